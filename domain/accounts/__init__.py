"""Organizations with their clients, wallets and all that moves money."""
