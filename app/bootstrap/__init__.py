"""The composition root: builds every part of a process from the settings."""
