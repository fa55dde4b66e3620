"""What is asked for over HTTP, as marshmallow schemas."""
