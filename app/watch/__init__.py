"""What operators watch: metrics and log lines; no label holds a number or an id."""
