"""Adapters of eSIM networks."""
