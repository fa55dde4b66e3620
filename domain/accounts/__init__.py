"""Organizations with their clients, wallets, and everything that moves money."""
