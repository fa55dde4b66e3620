"""Access tokens, the keys that sign them, and client secrets; no HTTP and no tables."""
