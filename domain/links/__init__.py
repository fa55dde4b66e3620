"""Links, their eSIMs and plans, and the network that they live in."""
