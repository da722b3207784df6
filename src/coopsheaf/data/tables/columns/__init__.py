"""What columns mean: from cells to features, fitted once and applied again."""
