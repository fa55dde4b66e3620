"""An eSIM network inside this installation: stock, endpoints, usage and failures are simulated.

| module | holds |
|---|---|
| `network` | the adapter: every call of the port; who serves a device; what fails on demand |
| `calls` | one call: its moment, its time-out, its errors |
| `inventory` | the tables and every statement: eSIMs in stock, endpoints |
| `subscription` | one endpoint, its device and its plans, and what may happen to them, pure |
| `identifiers` | ICCIDs, numbers, activation codes, ids and dice, by seed |
"""
