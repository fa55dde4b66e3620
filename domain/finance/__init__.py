"""The books of the whole installation: its months, and the statements of each."""
