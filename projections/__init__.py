"""Read models: what the log looks like when it is asked questions; each can be rebuilt from it."""
