"""The HTTP rooms: they read requests, ask the domain or a read model, and shape replies."""
