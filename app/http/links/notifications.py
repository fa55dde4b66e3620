"""Where networks send their notifications; partners do not call it."""

from flask import Blueprint, Response
from werkzeug.exceptions import RequestEntityTooLarge

from app.http.edge.request import container, current_cause, current_request

BODY_BYTES_MAX = 16_384  # Many times what any network sends.

blueprint = Blueprint("notifications", __name__)


@blueprint.post("/networks/<name>/notifications")
def take_notification(name: str) -> Response:
    """Take a notification; the network's signature stands in place of a token."""
    request = current_request()
    body = request.get_data()
    if len(body) > BODY_BYTES_MAX:
        raise RequestEntityTooLarge
    headers = {key.lower(): value for key, value in request.headers.items()}
    container().gate.refuse()
    container().notifications.take(name, headers, body, current_cause())
    response = Response(status=204)
    del response.headers["Content-Type"]
    return response
