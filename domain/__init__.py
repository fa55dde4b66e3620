"""The rules of the business: aggregates, their events and pure decisions; no I/O."""
