"""The command line of operators; each file is one command or one group of them."""
