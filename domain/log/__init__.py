"""What can be asked of the domain: each command loads, decides and commits."""
