"""Plans: what is sold, and how their files are read."""
