"""The processes of the Procfile; each waits for what it needs, works, and ends when told to."""
