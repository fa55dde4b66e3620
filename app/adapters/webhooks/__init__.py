"""Telling partners: HTTP to addresses that partners name."""
