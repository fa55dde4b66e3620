"""What all operations share: the front, checks, errors, input, replies and the OpenAPI document."""
