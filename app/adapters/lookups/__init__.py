"""Providers of lookups."""
