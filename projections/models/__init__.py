"""The read models, one in each file."""
