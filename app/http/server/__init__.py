"""From bytes to a reply: uvicorn made strict and bounded, turns, the loop, and threads."""
