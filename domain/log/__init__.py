"""The event log: aggregates, the log itself, the stored form of events, wake-ups."""
