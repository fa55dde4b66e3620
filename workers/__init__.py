"""What happens after the reply: messages from the log, the work they ask for, and the sweeps."""
