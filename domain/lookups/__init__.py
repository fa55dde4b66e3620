"""Lookups of numbers, one at a time and in bulk."""
