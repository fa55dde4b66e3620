"""Riddles: everyday words where the trade has one, counted by definitions; a figure of the ratchet.

python -m tests.tidy.words [ROOM]     each of them, with the word to say instead
"""

import ast
import re
import sys
from collections.abc import Iterator

from tests.tidy.source import FUNCTIONS, PACKAGES, Source, sources

RIDDLES = [  # The words, what to say instead, and the names in which they have their one meaning.
    ("tell tells told telling", "notify, deliver, report, format; details, text, facts", ""),
    ("keep keeps kept keeping keeper", "save, store, retain; cached, stored", "keep_alive.*"),
    # An installation is held that must not change; a claim of the audit holds.
    ("hold holds held", "acquire, lease, cache; slot, balance", r"(\w+_)?(hold|held)|holds"),
    ("noted noting", "record, add; facts", ""),
    ("look looks looked looking", "refresh, poll, check; interval", "(may_)?look(ed)?_up.*"),
    ("take takes took taken taking", "claim, accept, acquire", r"(\w+_)?taken?_(over|back|off)"),
    # In the log it stands beside `get`; elsewhere its object is named.
    ("find finds", "load, select, read", r"find(_\w+)?"),
    ("place places placed", "position, ref, slot, location", r"(\w+_)?(place_?order|placed(_at)?)"),
    ("turn turns", "slot, lock, round, pace", "in_turn"),
    ("ring rings rang rung bell bells", "wake; message; key store", "key_?ring"),
    ("ask asks asked asking asker", "query, request; subject", ""),
    # A transaction, a stream and a message begin.
    ("begin begins began begun", "start, prepare, submit; started", r"(do_|on_\w*)?begin(_\w+)?"),
    ("rests resting rested", "pause, block; delay", ""),  # The rest is what is left.
    ("pass passes passed passing", "skip", ""),
    ("wonder at_once", "query; now, fresh, batch, on the loop", ""),
]
FOR_OTHERS = {"Event", "Created", "ByOperator", "Struct", "Shape"}  # Recorded or sent: they stay.


_ANY = "|".join(words.replace(" ", "|") for words, _, _ in RIDDLES)
_NAMED_SO = re.compile(rf"(?:^|_)(?:{_ANY})(?:_|$)")


def riddles(source: Source) -> Iterator[str]:
    """Find functions, classes, parameters and what is assigned under such a word."""
    for line, name in _definitions(source.tree):
        plain = re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")
        for words, say, right in RIDDLES if _NAMED_SO.search(plain) else ():
            is_one = re.search(rf"(?:^|_)(?:{words.replace(' ', '|')})(?:_|$)", plain)
            if is_one and not re.fullmatch(right, plain):
                yield f"{source.path}:{line}: {name}: say {say}"


def _definitions(node: ast.AST, *, is_sent: bool = False) -> Iterator[tuple[int, str]]:
    for child in ast.iter_child_nodes(node):
        bases = [ast.unparse(base) for base in getattr(child, "bases", ())]
        is_message = not FOR_OTHERS.isdisjoint(base.rpartition(".")[2] for base in bases)
        if isinstance(child, (*FUNCTIONS, ast.ClassDef)) and not is_message:
            yield child.lineno, child.name
        elif isinstance(child, ast.arg):
            yield child.lineno, child.arg
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store) and not is_sent:
            yield child.lineno, child.id
        elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
            yield child.lineno, child.attr
        is_field = isinstance(child, ast.AnnAssign | ast.Assign) and is_sent
        yield from _definitions(child, is_sent=is_message or is_field)


if __name__ == "__main__":
    for each in sources(*(sys.argv[1:] or PACKAGES)):
        sys.stdout.writelines(f"{found}\n" for found in riddles(each))
