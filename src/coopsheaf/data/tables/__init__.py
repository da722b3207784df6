"""The user's own graph: tables of nodes and edges, whatever they come from."""
