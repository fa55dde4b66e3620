"""Links, their eSIMs and plans, and the port of the network that they live in."""
