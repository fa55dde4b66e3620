"""Own stores: state that no log can rebuild. ARCHITECTURE lists each and what losing it costs."""
