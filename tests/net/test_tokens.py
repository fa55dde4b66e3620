"""Tokens, and who is let in with them."""

import base64
import json
from urllib.parse import urlencode

from tests.net.net import Net, Partner

FORM = "application/x-www-form-urlencoded"


def ask(
    partner: Partner,
    token_path: str = "/auth/token",
    *,
    headers: dict[str, str] | None = None,
    **form: str,
) -> None:
    """Ask for a token as somebody who has none."""
    nobody = partner.net.stranger()
    nobody.post(token_path, body=urlencode(form), **({"Content_Type": FORM} | (headers or {})))


def credentials(partner: Partner) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "client_id": partner.client_id,
        "client_secret": partner.secret,
    }


def test_a_client_gets_a_token(net: Net, acme: Partner) -> None:
    ask(acme, **credentials(acme))
    ask(acme, **credentials(acme), scope="wallet links")
    pair = base64.b64encode(f"{acme.client_id}:{acme.secret}".encode()).decode()
    net.masks.plain[pair] = "acme's credentials"
    ask(acme, headers={"Authorization": f"Basic {pair}"}, grant_type="client_credentials")
    ask(acme, **credentials(acme) | {"client_secret": f" {acme.secret} "})
    token = acme.token(scope="wallet").json["access_token"]
    parts = [json.loads(base64.urlsafe_b64decode(each + "==")) for each in token.split(".")[:2]]
    net.note("what the token says", *(json.dumps(net.masks.tree(part), indent=1) for part in parts))


def test_errors_of_the_token_operation_have_the_shape_of_oauth(net: Net, acme: Partner) -> None:
    given = credentials(acme)
    ask(acme, **given | {"client_secret": "cls_wrong"})
    ask(acme, **given | {"client_id": "cl_nobody"})
    ask(acme, **given | {"grant_type": "password"})
    ask(acme, **given, scope="wallet everything")
    ask(acme, **given, scope="deposits")
    ask(acme)
    ask(acme, grant_type="client_credentials")
    ask(acme, headers={"Authorization": "Basic eDp5"}, **given)
    ask(acme, headers={"Authorization": "Bearer eDp5"}, grant_type="client_credentials")
    nobody = net.stranger()
    nobody.post("/auth/token", body="grant_type=a&grant_type=b", Content_Type=FORM)
    nobody.post("/auth/token", given | {"client_secret": "cls_wrong"})
    nobody.post("/auth/token", body="x", Content_Type="text/plain")
    nobody.post("/auth/token", body="{", Content_Type="application/json")
    nobody.get("/auth/token")


def test_repeated_wrong_secrets_slow_a_client_down(net: Net, acme: Partner) -> None:
    wrong = credentials(acme) | {"client_secret": "cls_wrong"}
    for _ in range(5):
        reply = net.ask("POST", "/auth/token", {"Content-Type": FORM}, urlencode(wrong).encode())
        assert reply.status == 401
    ask(acme, **wrong)
    ask(acme, **credentials(acme))


def test_who_is_not_let_in(acme: Partner) -> None:
    acme.get("/v1/wallet", Authorization="none")
    acme.get("/v1/wallet", Authorization="Basic eDp5")
    acme.get("/v1/wallet", Authorization="Bearer")
    acme.get("/v1/wallet", Authorization="Bearer nonsense")
    token = acme.token().json["access_token"]
    head, claims, signature = token.split(".")
    forged = f"{head}.{claims}.{signature[:-8]}AAAAAAAA"
    acme.get("/v1/wallet", Authorization=f"Bearer {forged}")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none","typ":"at+jwt"}').decode().rstrip("=")
    acme.get("/v1/wallet", Authorization=f"Bearer {unsigned}.{claims}.{signature}")
    stray = (
        base64.urlsafe_b64encode(b'{"alg":"ES256","typ":"at+jwt","kid":"none"}')
        .decode()
        .rstrip("=")
    )
    acme.get("/v1/wallet", Authorization=f"Bearer {stray}.{claims}.{signature}")
    narrow = acme.token(scope="lookup").json["access_token"]
    acme.get("/v1/wallet", Authorization=f"Bearer {narrow}")


def test_a_token_ends_and_so_does_a_revoked_client(net: Net, acme: Partner) -> None:
    acme.get("/v1/wallet")
    net.run("client", "revoke", acme.client_id)
    net.until(lambda: acme.ask("GET", "/v1/wallet").status == 401)
    acme.get("/v1/wallet")
    ask(acme, **credentials(acme))


def test_a_secret_is_rotated(net: Net, acme: Partner) -> None:
    newer = net.run("client", "rotate-secret", acme.client_id)
    ask(acme, **credentials(acme))
    ask(acme, **credentials(acme) | {"client_secret": newer["client_secret"]})
    newest = net.run("client", "rotate-secret", acme.client_id, "--old-ends", "0")
    ask(acme, **credentials(acme) | {"client_secret": newer["client_secret"]})
    ask(acme, **credentials(acme) | {"client_secret": newest["client_secret"]})


def test_a_partner_renews_and_deletes_clients_of_its_own(
    net: Net, acme: Partner, rival: Partner
) -> None:
    acme.get("/v1/account/clients")
    made = net.run("client", "create", "--org", acme.id, "--scope", "clients", "--scope", "wallet")
    keys = Partner(net, "keys", made, acme.id)
    keys.get("/v1/account")
    net.until(lambda: len(keys.ask("GET", "/v1/account/clients").data) == 2)
    keys.get("/v1/account/clients")
    one = f"/v1/account/clients/{acme.client_id}"
    for body in ({"old_ends_in": -1}, {"old_ends_in": 7_776_001}, {"old_ends_in": "60", "x": 1}):
        keys.post(f"{one}/rotate-secret", body)
    keys.post(f"{one}/rotate-secret", {"old_ends_in": 60}, Idempotency_Key="k-1")
    keys.post(f"{one}/rotate-secret", {"old_ends_in": 60}, Idempotency_Key="k-1")
    keys.post(f"{one}/rotate-secret", {"old_ends_in": 0}, Idempotency_Key="k-1")
    keys.post(f"{one}/rotate-secret")
    ask(acme, **credentials(acme))
    for path in (f"/v1/account/clients/{rival.client_id}", "/v1/account/clients/cl_nobody"):
        keys.post(f"{path}/rotate-secret")
        keys.call("DELETE", path)
    keys.get("/v1/account/clients")
    keys.call("DELETE", one)
    net.until(lambda: acme.ask("GET", "/v1/wallet").status == 401)
    acme.get("/v1/wallet")
    keys.call("DELETE", one)
    keys.post(f"{one}/rotate-secret")
    keys.call("DELETE", f"/v1/account/clients/{keys.client_id}")
    keys.get("/v1/account/clients")
    net.run("client", "create", "--m2m", "--scope", "clients")


def test_an_organization_is_suspended_and_comes_back(net: Net, acme: Partner) -> None:
    for status, answer in (("suspended", 403), ("active", 200), ("inactive", 403)):
        net.run("org", "set", acme.id, "--status", status)
        net.until(lambda answer=answer: acme.ask("GET", "/v1/wallet").status == answer)
        acme.get("/v1/wallet")
        ask(acme, **credentials(acme))


def test_a_machine_names_the_organization_that_it_acts_for(net: Net, acme: Partner) -> None:
    machine = Partner(net, "machine", net.run("client", "create", "--m2m"), "")
    machine.get("/v1/wallet", X_Organization_Id=acme.id)
    machine.get("/v1/wallet")
    machine.get("/v1/wallet", X_Organization_Id="")
    machine.get("/v1/wallet", X_Organization_Id="nonsense")
    machine.get("/v1/wallet", X_Organization_Id="8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11")
    acme.get("/v1/wallet", X_Organization_Id="8c1f0c7e-5b1f-4a5e-8a44-0f6f6f0e2d11")
    machine.get("/v1/account", X_Organization_Id=acme.id)
    ask(machine, **credentials(machine))


def test_a_client_without_all_scopes(net: Net, acme: Partner) -> None:
    made = net.run("client", "create", "--org", acme.id, "--scope", "lookup", "--scope", "plans")
    narrow = Partner(net, "narrow", made, acme.id)
    ask(narrow, **credentials(narrow))
    narrow.get("/v1/plans?per_page=1")
    for path in ("/v1/links", "/v1/wallet", "/v1/webhooks", "/v1/usage"):
        narrow.get(path)


def test_keys_and_metadata_are_published(net: Net) -> None:
    nobody = net.stranger()
    keys = nobody.ask("GET", "/.well-known/jwks.json")
    for key in keys.json["keys"]:
        for name in ("x", "y", "kid"):
            net.masks.plain[key[name]] = f"the key's {name}"
    nobody.get("/.well-known/jwks.json")
    nobody.get("/.well-known/oauth-authorization-server")
    nobody.get("/.well-known/oauth-authorization-server/elsewhere")
    nobody.get("/.well-known/openid-configuration")
