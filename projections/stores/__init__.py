"""Own stores: tables that the log cannot rebuild. ARCHITECTURE says what losing each costs."""
