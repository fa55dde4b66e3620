"""What all operations share: checks, errors, input, replies and the OpenAPI document."""
