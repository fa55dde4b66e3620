"""Adapters: what fulfils a port of the inner rooms; only the bootstrap imports them."""
