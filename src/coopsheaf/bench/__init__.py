"""Benchmarks: recipes, runs over splits, their records, published numbers, tables."""
