"""The eSIM Go network (API v2.5): an order brings the eSIM, its ICCID and its bundle at once."""
