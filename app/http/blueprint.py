"""A group of operations whose arguments are parsed our way."""

from typing import Any

import flask_smorest
from marshmallow import Schema

from app.http.parser import Parser


class Blueprint(flask_smorest.Blueprint):
    """The blueprint of flask-smorest with our parser, and schemas that are made once."""

    ARGUMENTS_PARSER = Parser()

    def arguments(self, schema: type[Schema], **options: Any) -> Any:
        """Load a part of the request; an instance of the schema serves every request."""
        return super().arguments(schema(), **options)
