"""Datasets: by name, generated, or the user's own."""
