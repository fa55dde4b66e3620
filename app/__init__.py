"""The outer ring: settings, the composition root, adapters, HTTP, the command line, entries."""
