"""Sources of carrier data behind `domain.ports.NumberLookup`; only the container imports them."""
