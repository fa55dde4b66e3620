"""The auditor of the log, and the invariants that it checks."""
