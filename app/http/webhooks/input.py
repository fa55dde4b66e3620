"""Input of webhooks: where an organization wants to be told, and of what."""

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields, post_load, validate

from app.http.edge.input import NOT_A_FLAG, described
from app.http.edge.replies import one_of
from app.http.edge.request import container
from app.http.links.input import name_field
from domain.webhooks.destination import URL_CHARS_MAX, NotAllowed, read_destination
from domain.webhooks.messages import TYPES

NOT_A_TYPE = "Is no type of events."
NO_TYPE = "Must name at least one type; leave it out, or null, for all."
TWICE = "Stands there already."


def check_url(url: str) -> None:
    """Refuse a URL that no webhook may have; its name is judged at each delivery."""
    try:
        read_destination(url, allow_private=container().settings.webhooks_allow_private)
    except NotAllowed as refused:
        raise ValidationError(str(refused)) from None


class Types(fields.List[str]):
    """A list of types, each once."""

    def __init__(self, **kwargs: Any) -> None:
        known = fields.String(
            validate=validate.OneOf([*TYPES], error=NOT_A_TYPE),
            metadata=one_of("WebhookEventType", TYPES),
        )
        super().__init__(known, **kwargs)

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> list[Any]:
        if value == [] or (isinstance(value, list) and len(value) > len(TYPES)):
            raise ValidationError(NO_TYPE if not value else {len(TYPES): [TWICE]})
        types = super()._deserialize(value, attr, data, **kwargs)
        twice = {i: [TWICE] for i, each in enumerate(types) if each in types[:i]}
        if twice:
            raise ValidationError(twice)
        return types


class Flag(fields.Boolean):
    """True or false, not a text or number that could mean it."""

    def _deserialize(
        self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **kwargs: Any
    ) -> bool:
        _ = attr, data, kwargs
        if not isinstance(value, bool):
            raise ValidationError(NOT_A_FLAG)
        return value


def _url(*, required: bool) -> fields.String:
    about = (
        "Where we POST to: an `https` URL with the port 443 whose name leads to public addresses "
        "alone, in plain ASCII, without user and fragment."
    )
    return fields.String(
        required=required,
        validate=check_url,
        # The schema cannot say what is public.
        metadata=described(about, format="uri", maxLength=URL_CHARS_MAX),
    )


def _events() -> Types:
    about = "The types to be told of; null: all, also those that are added later."
    rules = {"minItems": 1, "uniqueItems": True}
    return Types(allow_none=True, metadata=described(about, **rules))


_DESCRIPTION = "Your own words for it, without control characters; empty or null: none."


class _Body(Schema):
    @post_load
    def read_empty_as_none(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Treat an empty description as none."""
        return data | ({"description": None} if data.get("description") == "" else {})


class WebhookBody(_Body):
    """The endpoint to register."""

    url = _url(required=True)
    events = _events()
    description = name_field(_DESCRIPTION)


class WebhookChanges(_Body):
    """What is to change of an endpoint; what is left out stays."""

    url = _url(required=False)
    events = _events()
    description = name_field(_DESCRIPTION)
    enabled = Flag(
        metadata=described(
            "Whether it is told what happens. What happened meanwhile is not made up for."
        )
    )
