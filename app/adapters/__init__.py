"""Adapters of carrier data and of the eSIM network; only the container imports them."""
