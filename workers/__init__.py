"""What happens after the answer: messages from the log, the work they ask for, and the sweep."""
