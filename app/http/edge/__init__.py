"""One blueprint per group of operations; a view reads its input, asks once, shapes the answer."""
