"""The processes that take turns, and what each database is asked."""

from tests.budgets.crew import crew
from tests.budgets.tally import tally

__all__ = ["crew", "tally"]
