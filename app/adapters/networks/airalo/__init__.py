"""The eSIM network of Airalo, Partner API v2."""
