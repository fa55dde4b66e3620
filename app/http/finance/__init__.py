"""Statements and usage over HTTP."""
