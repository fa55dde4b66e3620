"""A group of operations whose arguments are parsed our way."""

import flask_smorest

from app.http.parser import Parser


class Blueprint(flask_smorest.Blueprint):
    """The blueprint of flask-smorest with our parser."""

    ARGUMENTS_PARSER = Parser()
