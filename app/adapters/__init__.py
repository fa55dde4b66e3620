"""Adapters, which implement the ports of the inner rooms; only the bootstrap imports them."""
