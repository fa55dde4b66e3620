"""An eSIM network inside this installation: stock, endpoints, usage and failures are simulated."""
