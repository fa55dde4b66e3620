"""Own stores: state that the log cannot rebuild. ARCHITECTURE lists what losing each one costs."""
