"""The server: clients come as bytes (`connection`) and are answered by the loop or a thread."""
