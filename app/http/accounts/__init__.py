"""Wallets and transactions over HTTP."""
