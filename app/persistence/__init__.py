"""The databases: the log, the read models and the own stores, on SQLite."""
