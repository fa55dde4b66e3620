"""The books: margin, reconciliation, ledger, trial balance and statements, from the log alone."""
