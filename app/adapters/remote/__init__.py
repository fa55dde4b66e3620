"""Outgoing HTTP to providers: one provider's API over a pool of connections."""
