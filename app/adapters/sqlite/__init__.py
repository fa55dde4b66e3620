"""The log, read models and stores in files of SQLite."""
