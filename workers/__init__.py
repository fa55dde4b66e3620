"""Work after the reply to a request: messages from the log, workers for them, and the sweeps."""
