"""The composition root: builds every part from its parts."""
