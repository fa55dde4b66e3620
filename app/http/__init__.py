"""The HTTP edge: it reads requests, asks the domain or a read model, and shapes replies."""
