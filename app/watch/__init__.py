"""What operators watch, for Prometheus; no label ever holds a number, an id or an organization."""
