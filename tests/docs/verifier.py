"""The verifier as a module; it is a program for auditors, and no package of ours."""

from projections.audit.rules import VERIFIER, verifier

__all__ = ["VERIFIER", "verify"]

verify = verifier()
