"""Facts of an honest log that are others than they may be, and the sentence that finds each."""

from typing import Any, NamedTuple
from uuid import uuid4

from tests.projections.rewriting import Rewriting

ANOTHER = object()  # A sum is one more, and an id one of nobody.
OF_ITS_KIND = {"kind": "topup", "currency": "EUR", "type": "other", "reason": "by_hand"}
OF_ITS_KIND |= {"month": "2020-01", "iccid": "8988247000000000017", "name": "Another plan"}


class Fact(NamedTuple):
    """The first event of a topic that has this path has something else there."""

    topic: str
    path: str
    reason: str
    instead: Any = ANOTHER

    def falsify(self, log: Rewriting) -> int:
        """Write it into the log; return the position of its event."""
        *way, name = self.path.split(".")
        for position, row in enumerate(log.rows, 1):
            facts: Any = row.state if row.topic == self.topic else {}
            for step in way:
                facts = facts[int(step)] if isinstance(facts, list) else facts.get(step) or {}
            if name in facts or (facts and self.instead is not ANOTHER):
                known = OF_ITS_KIND.get(name) or str(uuid4())
                other = facts[name] + 1 if isinstance(facts.get(name), int) else known
                facts[name] = other if self.instead is ANOTHER else self.instead
                return position
        raise LookupError(self.topic, self.path)


def each(topic: str, paths: str, reason: str) -> list[Fact]:
    return [Fact(topic, path, reason) for path in paths.split()]


ENTRY, EARLY = "organization_id amount_micros reference.type reference.id", "2026-03-01T12:00:00Z"
NAMED = "follows from its facts"
ELSE = "has announced something else"
OTHER_FEE = "is charged before it is due, twice, or otherwise"
OTHER_SUM = "approves something else than was proposed"
OTHER_WORTH = "gives another sum back than its items cost"
NOT_CHARGED = "another sum back than was charged"
FACTS = [
    *each("wallet.charged", f"{ENTRY} kind currency", ELSE),
    *each("wallet.refunded", f"{ENTRY} charge_id", ELSE),
    *each("wallet.deposited", ENTRY, ELSE),
    *each("wallet.adjusted", f"{ENTRY} description", ELSE),
    Fact("wallet.charged", "currency", "changes its organization or currency"),
    Fact("wallet.refunded", "reason", "its reason is not"),
    Fact("wallet.refunded", "charge_id", "exceeds what is left of"),
    Fact("deposit.made", "transaction_id", NAMED),
    *each("adjustment.approved", "organization_id reference amount_micros", OTHER_SUM),
    *each("adjustment.approved", "reason transaction_id", OTHER_SUM),
    Fact("adjustment.approved", "actor", "is not approved by another operator", "os:root"),
    Fact("number_lookup.answered", "price.transaction_id", NAMED),
    Fact("number_lookup.answered", "originator_topic", "which is not its kind", "os.system"),
    Fact("number_lookup.refunded_by_hand", "refund.transaction_id", NAMED),
    Fact("bulk_job.created", "price.transaction_id", NAMED),
    Fact("bulk_job.created", "item_price_micros", "costs another sum than its items"),
    Fact("bulk_job.items_completed", "indexes", "or one that the job does not have", [4]),
    Fact("bulk_job.items_failed", "refund.transaction_id", NAMED),
    Fact("bulk_job.items_failed", "refund.amount_micros", OTHER_WORTH),
    Fact("bulk_job.items_failed", "refund", OTHER_WORTH, None),
    Fact("bulk_job.cancelled", "count", "cancels other items than the open ones"),
    Fact("bulk_job.cancelled", "refund.transaction_id", NAMED),
    Fact("link.requested", "price.transaction_id", NAMED),
    Fact("link.requested", "price.amount_micros", "costs another sum than its plan"),
    Fact("link.endpoint_requested", "organization_id", "names another organization_id than its"),
    Fact("link.order_requested", "item", "orders another plan", "another"),
    Fact("link.activated", "iccid", "names another iccid than its link has"),
    Fact("link.activated", "activation_id", NAMED),
    Fact("link.activated", "plan.name", "has another plan than was asked for"),
    Fact("link.activated", "bought_at", "begins with plans that nobody has bought", EARLY),
    Fact("link.provisioning_failed", "refund.transaction_id", NAMED),
    Fact("link.provisioning_failed", "refund", NOT_CHARGED, None),
    Fact("link.provisioning_failed", "iccid", "names another iccid than its link has", None),
    Fact("link.plan_added", "plan.name", ELSE),
    Fact("link.ended", "refunds", "gives another sum back than was left", []),
    Fact("link.ended", "reason", "for another reason than was intended", "ended"),
    Fact("lost_order.taken_back", "iccid", "names another iccid than its lost_order has"),
    Fact("plan_change.requested", "additions.0.activation_id", NAMED),
    Fact("plan_change.requested", "additions.0.price.transaction_id", NAMED),
    Fact("plan_change.requested", "additions.0.price", "another sum than its plans", None),
    Fact("plan_change.plan_addition_started", "link_id", "names another link_id than its"),
    Fact("plan_change.failed", "index", "a step that is not the next one"),
    Fact("plan_change.failed", "refunds", "fails twice, or gives another sum back", []),
    Fact("plan_change.failed", "refunds.0.transaction_id", NAMED),
    Fact("monthly_fee.due", "price.transaction_id", NAMED),
    Fact("monthly_fee.due", "price.amount_micros", "is another sum than that of its links"),
    Fact("monthly_fee.due", "timestamp", "falls due before its month", EARLY),
    *each("monthly_fee.charged", "organization_id month price.amount_micros", OTHER_FEE),
]
