"""Tables of cases of which `make test` has half, and `make soak` all."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest


def half(*axes: Sequence[Any]) -> list[Any]:
    """Return every combination of three axes or more; every other one is for `make soak`.

    In the half that stays every two values of different axes meet.
    """
    assert len(axes) > 2
    assert all(len(axis) > 1 for axis in axes)
    found = []
    for cell in product(*(enumerate(axis) for axis in axes)):
        marks = [pytest.mark.soak] if sum(index for index, _ in cell) % 2 else []
        found.append(pytest.param(*(value for _, value in cell), marks=marks))
    return found
