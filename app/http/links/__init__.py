"""Links over HTTP."""
