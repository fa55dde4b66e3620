"""What an adapter may raise: every foreign error becomes one of these."""


class ProviderError(Exception):
    """The root of what an adapter may raise; foreign errors never pass it untranslated."""


class Unavailable(ProviderError):
    """Raised when nothing happened at the provider and nothing is known: try later."""


class Rejected(ProviderError):
    """Raised when the network refuses for good; nothing happened."""


class OutcomeUnknown(ProviderError):
    """Raised when a reply was lost or late: it may have happened, or may still happen."""
