"""The thousand real numbers that lookups are measured with."""

import json
from pathlib import Path

FILE = Path(__file__).parents[1] / "data" / "numbers.json"


def real_numbers() -> list[str]:
    """Return 1000 valid numbers of 50 countries."""
    numbers: list[str] = json.loads(FILE.read_text("utf-8"))["phone_numbers"]
    return numbers
