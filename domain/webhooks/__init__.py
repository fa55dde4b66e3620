"""Webhooks: the endpoints of organizations, what they are told, and how it is sent."""
