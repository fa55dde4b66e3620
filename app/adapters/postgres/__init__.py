"""The log, read models and stores on PostgreSQL."""
