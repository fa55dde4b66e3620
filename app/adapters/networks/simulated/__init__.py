"""An eSIM network that needs no network: its stock, endpoints, usage and failures are simulated.

| module | holds |
|---|---|
| `network` | the adapter: every call of the port, its errors and its time-outs |
| `inventory` | the tables and every statement: eSIMs in stock, endpoints |
| `subscription` | one endpoint and what may happen to it, pure |
| `meter` | how plans are used up and run out, pure |
| `device` | the habits of the device behind an endpoint, by seed |
| `identifiers` | ICCIDs, numbers, activation codes, ids and dice, by seed |
| `serving` | the real networks that a device may be served by |
| `script` | the plans that fail on demand in a sandbox |
"""
