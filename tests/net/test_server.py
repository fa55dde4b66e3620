"""What the server itself says: routes, methods, bodies and bytes that no client would send."""

from tests.net.document import digests
from tests.net.net import Net, Partner
from tests.net.recording import told_headers

HOST = b"Host: api.example\r\n"


def test_routes_and_methods_that_are_not_there(net: Net) -> None:
    acme, nobody = net.partner(), net.stranger()
    for path in (
        "/nowhere",
        "/v1",
        "/v1/",
        "/v1/wallet/",
        "/v1/links/a%2Fb",
        "/v1/links/%5C",
        "/V1/wallet",
        "//v1/wallet",
    ):
        acme.get(path)
    nobody.get("/nowhere")
    for method, path in (
        ("DELETE", "/v1/wallet"),
        ("POST", "/v1/transactions"),
        ("PUT", "/v1/links"),
        ("GET", "/number-lookup"),
        ("PATCH", "/auth/token"),
        ("POST", "/livez"),
        ("OPTIONS", "/v1/links"),
    ):
        acme.call(method, path)
    nobody.call("DELETE", "/v1/wallet")
    acme.call("HEAD", "/v1/wallet")
    acme.call("HEAD", "/nowhere")


def test_bodies_and_their_types(acme: Partner) -> None:
    bulk = "/number-lookup/bulk"
    acme.post(bulk, body="{} {}", Content_Type="application/json")
    acme.post(bulk, body='{"phone_numbers": [NaN]}', Content_Type="application/json")
    acme.post(bulk, body=b"\xff", Content_Type="application/json")
    acme.post(bulk, body='{"a": 1, "a": 2}', Content_Type="application/json")
    acme.post(bulk, body="[" * 5_000, Content_Type="application/json")
    acme.post(bulk, body="{}", Content_Type="application/xml")
    acme.post(bulk, body="{}")
    acme.post(bulk, body="{}", Content_Type="application/merge-patch+json; charset=utf-8")
    acme.post(bulk, body=" " * (1 << 20) + "{}", Content_Type="application/json")
    acme.call("GET", "/v1/wallet", body="", Content_Type="application/json")
    acme.call("GET", "/v1/wallet", body="{", Content_Type="application/json")
    acme.call("GET", "/v1/wallet", body="x", Content_Type="text/plain")


def test_request_ids_and_compression(acme: Partner) -> None:
    acme.get("/v1/wallet", X_Request_Id="my-id-1")
    acme.get("/v1/wallet", X_Request_Id="none")
    acme.get("/v1/wallet", X_Request_Id="+14155552671")
    acme.get("/v1/wallet", X_Request_Id="x-" * 150)
    acme.get("/v1/plans/regions", Accept_Encoding="gzip")
    acme.get("/v1/plans/regions", Accept_Encoding="gzip;q=0")
    acme.get("/v1/wallet", Accept_Encoding="gzip")
    acme.get("/v1/wallet", Accept="text/html")


BYTES = {
    "no host": b"GET /.well-known/jwks.json HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /.well-known/jwks.json HTTP/1.1\r\n" + HOST + HOST + b"\r\n",
    "an odd host": b"GET /.well-known/jwks.json HTTP/1.1\r\nHost: a b\r\n\r\n",
    "nonsense": b"nonsense\r\n\r\n",
    "broken chunks": b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "an unknown method": b"BREW /livez HTTP/1.1\r\n" + HOST + b"\r\n",
    "an announced body of two mebibytes": b"POST /number-lookup HTTP/1.1\r\n"
    + HOST
    + b"Content-Length: 2097152\r\n\r\n",
    "a long target": b"GET /?" + b"x" * 200_000,
    "a long header": b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 200_000,
    "HTTP/1.0": b"GET /livez HTTP/1.0\r\n\r\n",
    "an absolute target": b"GET http://api.example/livez HTTP/1.1\r\n"
    + HOST
    + b"Connection: close\r\n\r\n",
    "all of the server": b"OPTIONS * HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n",
    "chunks": b"POST /number-lookup HTTP/1.1\r\n"
    + HOST
    + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "broken bytes for the token": b"POST /auth/token HTTP/1.1\r\nbad header\r\n\r\n",
}


def test_bytes_that_are_no_request(net: Net) -> None:
    for title, sent in BYTES.items():
        net.send(f"bytes: {title}", sent)


def test_requests_that_do_not_come_to_their_end(net: Net) -> None:
    net.send("half a head", b"GET /livez HTTP/1.1\r\nHost: a", half=True)
    net.send(
        "half a body",
        b"POST /auth/token HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\ngrant",
        half=True,
    )


def test_documents_and_probes(net: Net) -> None:
    nobody = net.stranger()
    for path in ("/livez", "/readyz", "/number-lookup/health", "/"):
        nobody.get(path)
    document = nobody.ask("GET", "/openapi.json")
    net.note("GET /openapi.json", f"-> {document.status}", told_headers(document.headers.items()))
    net.recording.keep("the document: see tests/net/document.py", digests(document.json))
    for path in ("/docs", "/docs/", "/docs/nothing", "/metrics"):
        reply = nobody.ask("GET", path)
        kind, is_page = reply.headers.get("content-type", ""), b"<html" in reply.body
        net.note(f"GET {path}", f"-> {reply.status}", f"content-type: {kind}, a page: {is_page}")
    nobody.post("/networks/esimgo/notifications", {"event": "x"})
    nobody.post("/networks/simulated/notifications", {"event": "x"})
    nobody.get("/networks/esimgo/notifications")
