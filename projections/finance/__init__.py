"""What finance staff look at, made from the read models and the log."""
