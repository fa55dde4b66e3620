"""Webhooks: the endpoints of organizations, the messages to them, and how they are sent."""
