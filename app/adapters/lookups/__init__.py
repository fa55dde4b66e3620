"""Providers of number lookups."""
