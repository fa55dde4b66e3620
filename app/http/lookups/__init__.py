"""Lookups and jobs over HTTP."""
