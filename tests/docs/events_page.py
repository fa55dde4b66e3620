"""Writes docs/verifier/events.md from the event classes: `python -m tests.docs.events_page`.

The page has each event for which the verifier has a rule, so a new rule needs it written anew, and
a new field needs its meaning below. What stands before the list of events is written by hand.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from itertools import chain
from textwrap import fill
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

import domain.aggregates  # noqa: F401  # Makes every topic known.
from domain.log.aggregate import Event, class_of
from domain.log.mapper import COLUMNS
from tests.docs.verifier import verify
from tests.tidy.source import ROOT

PAGE = ROOT / "docs" / "verifier" / "events.md"
EVERYWHERE = ("timestamp", "request_id", "originator_topic", "actor")
PLAIN = {UUID: "id", int: "integer", str: "text", bool: "boolean", bytes: "bytes"}
PLAIN |= {datetime: "time", date: "date"}
MEANINGS = {
    "act": "what was done",
    "activation_id": "the plan on its link that this makes, or concerns",
    "additions": "the plans to add, in order: the steps behind the removals",
    "addon_id": "what the network calls the plan on the link",
    "adopted": "the network's reply was lost, and what it had done was found",
    "amount_micros": "how much; an adjustment may be below zero, and `wallet.claim_changed`,"
    " which then settles a claim",
    "asked": "what providers have answered, and what they charge us",
    "above_micros": "above what amount it takes two; null: there is no limit",
    "charged_for": "the stream that the charge is for",
    "as_of": "how old the answer is",
    "attempt": "how often it was tried, from 1",
    "balance_micros": "what the wallet holds after it",
    "bought_at": "when the plan was bought elsewhere",
    "box": "the sealed text, Base64",
    "charge_id": "the transaction of the charge that is given back",
    "claim": "random, so that no two workers write the same bytes",
    "claim_micros": "what the wallet owes for reversed deposits after it; left out: nothing",
    "client_id": "the name of the client",
    "code": "why; `PROVISIONING_FAILED` gives refunds the reason `provisioning_failed`, any other"
    " `provisioning_error`",
    "colour": "of its travellers' pages, #rrggbb; null: that of everybody",
    "cost": "what a provider charges us; partners never see it",
    "count": "how many items",
    "countries": "where the plan works, ISO 3166-1",
    "covers": "`people`: from here on people and prices take two, and amounts count by charge and"
    " by operator and day; left out: as before",
    "currency": "ISO 4217",
    "change_id": "the stream of the plan change",
    "customer_number": "of its account in the operator's bookkeeping; null: it has none of its own",
    "data_mb": "megabytes",
    "deposit": "the `reference` of the deposit that is reversed",
    "deadline": "until when it is tried",
    "description": "what statements say; that of an adjustment, reversal or payout is its reason",
    "details": "what the refusal says",
    "enabled": "whether lookups are allowed",
    "endpoint_id": "what the network calls the link",
    "errors": "what was wrong with each item",
    "estimated": "left out: true, the amount is not from the provider's reply",
    "fee_micros": "what one link costs in the month",
    "iccid": "the number of the eSIM",
    "id": "which one; of a deposit, adjustment, reversal or payout its own `reference`",
    "index": "of the step, from 0",
    "indexes": "which items, from 0",
    "item": "the plan as the network calls it",
    "item_price_micros": "what one item costs",
    "kept_hashes": "older secrets that still hold",
    "kept_until": "until when these hold",
    "key_hash": "a keyed hash",
    "known_micros": "of an invoice: what the log knew of the costs that it is for",
    "kind": "of the charge, or of the end that is intended",
    "last_position": "of the last event before the loss",
    "limit_micros": "what may be spent in a calendar month; null: there is no limit",
    "link_id": "the stream of the link",
    "link_ids": "the links that were active at the first instant of the month",
    "logo": "on its travellers' pages, a PNG in base64; null: none",
    "lpa": "the activation code, with any confirmation code, sealed",
    "may": "the rights, or scopes",
    "metadata": "what lists show beside it; of no account",
    "monthly_link_fee_micros": "what one active link costs in a month",
    "month": "YYYY-MM, UTC; of sealed data the name of its key, which may go on: `2026-11.0001`",
    "more": "the other plans of a link that was issued elsewhere",
    "name": "of the thing; no account",
    "network": "whose it is; left out: `simulated`",
    "notices": "what the traveller must know of the plan; left out: nothing",
    "organization_id": "whose it is",
    "origin": "what checkpoints call the log",
    "per_minute": "how many requests; null: as the setting says",
    "personal": "numbers and results, sealed",
    "plan": "as it was bought",
    "plan_id": "the stream of the plan",
    "price": "null: it costs nothing",
    "price_micros": "what the plan costs; of an organization its own price of a lookup, null: that"
    " of `price.set`",
    "proposal": "the stream of what another operator has approved; left out: it took one operator",
    "provider": "who has answered, or sends the invoice",
    "provider_plan_id": "the plan as the network calls it",
    "reason": "why",
    "reference": "what it was for; of what an operator books, and of a refund by hand, the"
    " operator's own text; of a cost the provider's",
    "refund": "null: nothing is given back",
    "refunds": "what is given back",
    "removals": "the plans to remove, in order: the first steps",
    "scopes": "what the client may do",
    "secret_hash": "a keyed hash",
    "seen_position": "the highest that somebody had seen",
    "sequence": "of the entries of the wallet, from 1",
    "server": "who goes on",
    "settled_at": "when the network can no longer do it",
    "since": "since when an order of the link may have been placed",
    "sealed_name": "what the partner calls the link, sealed; `name` is then null",
    "slice_index": "of the items that are looked up together",
    "slice_size": "how many items a slice has",
    "source": "where the answer comes from",
    "spending": "left out: the wallet has no limit",
    "spent_micros": "charges less refunds in that month, after this entry",
    "sponsor_profile": "whose numbers the eSIM has",
    "sponsor_profiles": "which are tried, in order",
    "subject": "which key, or up to where; of a proposal the name of a new operator, or the id"
    " of an operator or client who gets a secret",
    "total_count": "how many items",
    "transaction_id": "of the entry that this announces or is; of a refund by hand that of the"
    " charge",
    "type": "`lookup`, `job`, `link`, `plan_change`, `monthly_fee`, `deposit`, `sandbox_deposit`"
    " (of `deposit.played`, play money of a sandbox), `adjustment`, `reversal` or `payout`",
    "unawaited": "the sender was answered at once",
    "until": "when the call to the network is over",
    "validity_days": "days",
    "settles": "the transaction, or the stream of an invoice, that the bank has moved it for; null:"
    " it is an invoice",
    "number": "counts the bookings of one thing from 0; an odd one takes back the one before it",
    "value_date": "when the bank counts it",
    "color": "how lists show it",
}
# Whose events say who may do what, and what takes two.
PEOPLE = ("proposal.", "approval_limit.", "operator", "organization.", "api_client.")
BEGIN = "## Events\n"  # What stands before it is written by hand.
STRUCTS = "\n## What stands in them\n"
FIELDS = "\n## Fields\n\n| Field | Type | Is |\n|---|---|---|"


def page() -> str:
    """Return the page as it should be."""
    found: dict[str, type[Any]] = {}
    told = events = {f"`{topic}`": _told(class_of(topic, Event), found) for topic in _topics()}
    while left := sorted(found.keys() - told.keys()):
        told = told | {name: _told(found[name], found) for name in left}
    types: dict[str, Counter[str]] = defaultdict(Counter)
    for name, kind in chain.from_iterable(told.values()):
        types[name.rstrip("?")][kind] += 1
    usual = {name: of.most_common(1)[0][0] for name, of in sorted(types.items())}
    structs = {name: told[name] for name in sorted(found)}
    meant = [f"| `{name}` | {kind} | {MEANINGS[name]} |" for name, kind in usual.items()]
    by_hand = PAGE.read_text("utf-8").partition(BEGIN)[0]
    parts = ["", *_rows(events, usual), STRUCTS, *_rows(structs, usual), FIELDS, *meant, ""]
    return by_hand + BEGIN + "\n".join(parts)


def _rows(told: Mapping[str, Sequence[tuple[str, str]]], usual: Mapping[str, str]) -> list[str]:
    """Return the rows of events or structs; those that have the same fields share one."""
    alike = defaultdict[str, list[str]](list)
    for name, members in told.items():
        alike[_shown(members, usual)].append(name)
    rows = (f"- {', '.join(names)}: {shown}" for shown, names in alike.items())
    return [fill(row, 120, subsequent_indent="  ") for row in rows]


def _shown(members: Sequence[tuple[str, str]], usual: Mapping[str, str]) -> str:
    shown = []
    for told, kind in members:
        name, mark, _ = told.partition("?")
        shown.append(f"`{name}`{mark}" + (f" ({kind})" if kind != usual[name] else ""))
    return ", ".join(shown) or "no more"


def _topics() -> list[str]:
    return sorted({*verify.RULES, *(each for each in verify.JUDGED if each.startswith(PEOPLE))})


def streams() -> Iterator[str]:
    """Yield the row of each stream whose id is derived, which the part by hand must have."""
    for topic, (kind, *names) in verify.STREAMS.items():
        parts = ", ".join([f'"{kind}"', *names])
        yield f"| stream of `{topic}` | `derived({parts})` |\n"


def rights() -> Iterator[str]:
    """Yield the row of each right, which the part by hand must have."""
    acts = {right: [] for right in verify.ACTS.values()}
    for act, right in verify.ACTS.items():
        acts[right].append(act)
    for right in ("money", "approve", "catalogue", "keys", "audit"):
        alone, shared = verify.RIGHTS.get(right, ""), verify.BY_OTHERS_TOO.get(right, "")
        cells = (alone.split(), shared.split(), acts.get(right, []))
        told = (", ".join(f"`{each}`" for each in sorted(cell)) for cell in cells)
        yield f"| `{right}` | {' | '.join(told)} |\n"


def _told(kind: type[Any], found: dict[str, type[Any]]) -> list[tuple[str, str]]:
    """Return each field with its type; one that may be left out has a `?` behind its name."""
    told, hints = [], get_type_hints(kind)
    if issubclass(kind, msgspec.Struct):
        omits = kind.__struct_config__.omit_defaults
        members = [(e.name, omits and not e.required) for e in msgspec.structs.fields(kind)]
    else:
        others = (*COLUMNS, *EVERYWHERE)
        members = [(e.name, e.default is None) for e in fields(kind) if e.name not in others]
    for name, optional in members:
        told.append((name + "?" * optional, _type(hints[name], found, or_null=not optional)))
    return told


def _type(hint: Any, found: dict[str, type[Any]], *, or_null: bool = True) -> str:
    """Name a type as the page does; remember structs, which stand below the events."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        named = [_type(each, found) for each in arguments if each is not NoneType]
        return " or ".join([*named, *(["null"] if or_null and NoneType in arguments else [])])
    if origin is Literal:
        return ", ".join(f"`{each}`" for each in arguments)
    if origin is list:
        return f"list of {_type(arguments[0], found)}"
    if origin is dict:
        return "object"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        found[hint.__name__] = hint
        return hint.__name__
    return PLAIN[hint]


def main() -> None:
    PAGE.write_text(page(), "utf-8")
    sys.stdout.write(f"{PAGE}\n")


if __name__ == "__main__":
    main()
