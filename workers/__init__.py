"""Work after the reply to a request: messages from the log, and workers for them."""
