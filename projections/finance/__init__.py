"""What people of finance look at, made of the read models and the log."""
