"""BICS SIM for Things (SFT): a network with a stock of eSIMs, behind an API over HTTPS."""
