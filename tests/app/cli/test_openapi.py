"""`openapi`: the document that the service would serve, without a service."""

import json

from tests.app.cli.shell import Shell


def test_the_document_is_printed_with_the_settings_and_nothing_is_touched(nowhere: Shell) -> None:
    shell = nowhere.having(PUBLIC_URL="https://api.acme.test", BULK_NUMBERS_MAX="20")
    document = shell.json("openapi")
    assert json.loads(shell.run("openapi").stdout) == document
    assert document["servers"] == [{"url": "https://api.acme.test"}]
    body = document["components"]["schemas"]["BulkBody"]
    assert body["properties"]["phone_numbers"]["maxItems"] == 20
    assert [*nowhere.home.iterdir()] == []
