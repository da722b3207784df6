"""Over-squashing on trees: the NeighborsMatch experiment of the paper."""
