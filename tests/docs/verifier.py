"""The verifier as a module; it is a program for auditors, and no package of ours."""

import importlib.util
import sys
from types import ModuleType

from tests.tidy.source import ROOT

VERIFIER = ROOT / "docs" / "verifier" / "verify.py"


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("verify", VERIFIER)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["verify"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


verify = loaded()
