"""What goes in and out over HTTP, as marshmallow schemas: inputs are loaded, outputs described."""
