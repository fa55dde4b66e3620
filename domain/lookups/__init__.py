"""Lookups of numbers, single and in bulk."""
