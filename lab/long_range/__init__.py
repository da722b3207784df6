"""How far networks hear: Barbell, transfer over rings and trees, distances in long graphs."""
