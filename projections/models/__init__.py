"""The read models, one a file."""
