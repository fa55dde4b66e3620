"""Operators are numbered, so of two that register at once each gets a number of its own."""

from uuid import UUID

import pytest

from domain.accounts.operators import Operator
from tests.installation import Process

FREE = {"permit": lambda *_, **__: []}  # There is no limit.


@pytest.mark.any_database
def test_two_that_register_at_once_are_two_operators(process: Process) -> None:
    operators, cause = process.operators, process.cause()
    twins = iter(["twin"])

    def meanwhile(operator: UUID) -> str:
        for name in twins:
            facts = {"may": ["money"], "key_for": lambda _: "b" * 64}
            operators.register(cause, name=name, **facts, **FREE)
        return operator.hex * 2

    operators.register(cause, name="boss", may=["keys"], key_for=lambda _: "a" * 64, **FREE)
    late = operators.register(cause, name="late", may=["money"], key_for=meanwhile, **FREE)
    assert [each.name for each in operators.all()] == ["boss", "twin", "late"]
    assert late.id == Operator.id_of(3)
    assert late.key.key_hash == late.id.hex * 2
