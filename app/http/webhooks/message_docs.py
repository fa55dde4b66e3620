"""What endpoints are told, for the OpenAPI document: the body of each type, and how it is sent."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Meta

from app.http.edge.problems import CODES
from app.http.edge.schemas import ref
from domain.errors import NETWORK_REASONS
from domain.links.link import LINK_STATES
from projections.engine.shape import MORE_MAY_COME, id_of, means, one_of
from projections.models.jobs import STATUSES

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer"}
_ID: Final = {"type": "string", "format": "uuid"}
_IDS: Final = {"type": "array", "items": _ID}
_MOMENT: Final = {"type": "string", "format": "date-time"}
_REASON: Final = _TEXT | one_of("NetworkReason", NETWORK_REASONS, MORE_MAY_COME)
_END: Final = _TEXT | one_of("EndReason", ["cancelled", "ended"], MORE_MAY_COME)
_NULL: Final = {"type": "null"}
_LINK_STATUS: Final = _TEXT | one_of("LinkStatus", LINK_STATES, MORE_MAY_COME)
_BY: Final = _TEXT | one_of("StatusBy", ["partner", "network", "operator", "end"], MORE_MAY_COME)
_DIRECTION: Final = _TEXT | one_of("Direction", ["debit", "credit"])
_FIELDS: Final[Mapping[str, tuple[dict[str, Any], str]]] = {
    "activation_id": (_ID, "The activation of a plan."),
    "amount": (_TEXT, "What the entry moved."),
    "amount_or_null": ({"anyOf": [_TEXT, _NULL]}, "What it moved."),
    "balance": (_TEXT, "The balance after it."),
    "by": (_BY, "Who did it: you, its network, we, or its end."),
    "cancelled_count": (_COUNT, "Items that were cancelled."),
    "change_id": (_ID, "The change of plans."),
    "client_id": (_TEXT, "The API client."),
    "code": (_TEXT | one_of("ErrorCode", CODES, MORE_MAY_COME), "The code that a reply has."),
    "completed_count": (_COUNT, "Items with a result."),
    "currency": (_TEXT, "ISO 4217."),
    "direction": (_DIRECTION, "Whether it took from the balance or added to it."),
    "entry_or_null": (
        {"anyOf": [_ID, _NULL]},
        "The entry that took it below the threshold; null: the threshold was set above it.",
    ),
    "expires_at": (_MOMENT, "When the plan ends (UTC)."),
    "failed_count": (_COUNT, "Items without a result."),
    "installed_at": (_MOMENT, "When a device installed it (UTC)."),
    "job_id": (_ID, "The job."),
    "link_id": (_ID, "The link."),
    "link_status": (_LINK_STATUS, "Its status now."),
    "percent": (_COUNT, "How much of the plan is used."),
    "plan_id": (_ID, "The plan."),
    "plan_ids": (_IDS, "The plans that were not added."),
    "plans": (
        {"type": "array", "items": ref("ActivatedPlan")},
        "There where it begins with several plans: all of them.",
    ),
    "position": (_COUNT, "The place of the event in our log; it rises."),
    "reason": ({"anyOf": [_REASON, _NULL]}, "Why the network did not do it."),
    "refund_of": (_ID, "The entry that it gives back."),
    "refund_transaction_id": ({"anyOf": [_ID, _NULL]}, "What gives the price back."),
    "refund_transaction_ids": (_IDS, "What gives the prices back."),
    "sequence": (_COUNT, "1, 2, 3 … in each wallet, without a gap."),
    "status": (_TEXT | one_of("JobStatus", STATUSES, MORE_MAY_COME), "How the job ended."),
    "threshold": (_TEXT, "The `low_balance_threshold`."),
    "total_count": (_COUNT, "Items of the job."),
    "transaction_id": (_ID, "The entry in the wallet."),
    "was": (_LINK_STATUS, "Its status before."),
    "webhook_id": (_ID, "The endpoint."),
    "why": (_END, "What was asked for."),
}
_MOVED: Final = "transaction_id amount balance currency sequence"
# What has happened, and the fields of `data`; `reason=why`: it is called `reason`, but is that one,
# `plans?`: it may be absent.
_TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "job.finished": (
        "A job has ended.",
        "job_id status total_count completed_count failed_count cancelled_count",
    ),
    "link.activated": ("A link is active.", "link_id activation_id plan_id plans?"),
    "link.failed": ("A link could not be made.", "link_id code reason refund_transaction_id"),
    "link.installed": ("A device has installed an eSIM.", "link_id installed_at"),
    "link.suspended": ("A link carries no traffic.", "link_id"),
    "link.reactivated": ("A link carries traffic again.", "link_id"),
    "link.ended": ("A link has ended for good.", "link_id reason=why"),
    "link.usage": ("A part of a plan is used.", "link_id activation_id percent"),
    "link.expiring": ("A plan ends soon.", "link_id activation_id expires_at"),
    "link.status_changed": (
        "The status of a link is another.",
        "link_id status=link_status was by",
    ),
    "link.renamed": ("A link has another name, or none.", "link_id"),
    "link.plan_started": ("A plan has begun.", "link_id activation_id expires_at"),
    "link.plan_ended": ("A plan is over.", "link_id activation_id"),
    "link.plan_removed": ("A plan was removed.", "link_id change_id activation_id"),
    "topup.completed": ("A plan was added.", "link_id change_id activation_id plan_id"),
    "topup.failed": (
        "Plans could not be added.",
        "link_id change_id code reason plan_ids refund_transaction_ids",
    ),
    "wallet.low_balance": (
        "The balance is low.",
        "transaction_id=entry_or_null amount=amount_or_null balance currency threshold",
    ),
    "wallet.deposited": ("The wallet was paid into.", _MOVED),
    "wallet.charged": ("The wallet has paid.", _MOVED),
    "wallet.refunded": ("The wallet got a charge back.", f"{_MOVED} refund_of"),
    "wallet.adjusted": ("We have corrected the balance.", f"{_MOVED} direction"),
    "wallet.reversed": ("A deposit was taken back from the wallet.", _MOVED),
    "wallet.claim_changed": (
        "You owe what the wallet lacked of a reversal, or have paid for it.",
        f"{_MOVED} direction",
    ),
    "wallet.paid_out": ("We have paid you from the wallet.", _MOVED),
    "client.secret_rotated": ("A client has a new secret.", "client_id by"),
    "client.deleted": ("A client is refused for ever.", "client_id by"),
    "webhook.test": ("You have asked for a test.", "webhook_id"),
}
_HEADERS: Final = [
    {"in": "header", "name": name, "required": True, "description": about, "schema": _TEXT}
    for name, about in {
        "webhook-id": "The delivery; a repeat has the same one.",
        "webhook-timestamp": "When it was sent, in seconds since 1970.",
        "webhook-signature": "A signature, or two with a space between.",
    }.items()
]
_RESPONSES: Final = {
    "2XX": {"description": "You have taken it."},
    "410": {"description": "You want no more: the endpoint is disabled."},
    "default": {"description": "You have not taken it: it is sent again."},
}


def schemas() -> dict[str, Any]:
    """Return the schemas of the bodies by name: of each type its message and the `data` of it.

    Also `Message`, which is one of them by its `type`.
    """
    of_plan = {it: {"description": _FIELDS[it][1], **_ID} for it in ("activation_id", "plan_id")}
    found = {"ActivatedPlan": _object("One of the plans with which a link begins.", of_plan)}
    for name, (about, fields) in _TYPES.items():
        data, needed = {}, list[str]()
        for each in f"{fields} position".split():
            given, _, meant = each.rstrip("?").partition("=")
            kind, words = _FIELDS[meant or given]
            data[given] = {"description": words, **kind}
            needed += [] if each.endswith("?") else [given]
        facts = f"{_words(name)}Facts"
        whole = {"type": _TEXT | {"enum": [name]}, "timestamp": _MOMENT, "data": ref(facts)}
        found[facts] = _object(f"What it is about: {about}", data) | {"required": needed}
        found[f"{_words(name)}Message"] = _object(about, whole)
    known = {name: ref(f"{_words(name)}Message") for name in _TYPES}
    mapping = {name: each["$ref"] for name, each in known.items()}
    found["Message"] = {
        "description": "What is told: by its `type` one of these. Skip a type that is not here.",
        "anyOf": [*known.values()],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }
    return found


def body(says: str) -> Meta:
    """Return what the document says of a field that has the body of any type."""
    facts = {"link_id": id_of("link"), "position": 4715}
    shown = {"type": "link.suspended", "timestamp": "2026-11-21T03:04:05.000Z", "data": facts}
    return means(says, **ref("Message"), example=shown)


def webhooks() -> dict[str, Any]:
    return {
        name: {
            "post": {
                "operationId": f"told_{name.replace('.', '_')}",
                "tags": ["Webhooks"],
                "summary": about,
                "description": "We send it to your endpoint, signed (Standard Webhooks).",
                "security": [],
                "parameters": _HEADERS,
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": ref(f"{_words(name)}Message")}},
                },
                "responses": _RESPONSES,
            }
        }
        for name, (about, _) in _TYPES.items()
    }


def _object(about: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "description": about, "properties": fields, "required": [*fields]}


def _words(name: str) -> str:
    return "".join(each.title() for each in name.replace("_", ".").split("."))
