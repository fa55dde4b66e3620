"""The finance view: pages on the loopback interface, of figures that can only be read."""
