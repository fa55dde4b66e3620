"""Networks of eSIMs."""
