"""Webhooks: HTTP to addresses that partners name."""
