"""Where webhooks may lead: nowhere within, however it is written."""

from ipaddress import ip_address

import pytest

from domain.webhooks import destination
from domain.webhooks.destination import Destination, NotAllowed, is_public, read_destination

WITHIN = """
    0.0.0.0 10.1.2.3 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 168.63.129.16
    169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1
    198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 ::
    ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:10.0.0.1 ::ffff:8.8.8.8 64:ff9b::7f00:1 64:ff9b::808:808
    64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1
    2001:db8::1 2002:7f00:1:: 3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1
"""
OUTSIDE = """
    8.8.8.8 1.1.1.1 172.32.0.1 100.128.0.1 192.0.1.1 223.255.255.255 2606:4700::1111
    2a00:1450::8a 2001:4860:4860::8888
"""
OTHER_FORMS = """
    2130706433 0x7f000001 0177.0.0.1 0x7f.0.0.1 127.1 127.0.1 1.2.3.4.5 017700000001 0x7f.1
    256.1.1.1 127.0.0.1.example.0x example.2
"""


def at(host: str) -> str:
    return f"https://[{host}]/" if ":" in host else f"https://{host}/"


@pytest.mark.parametrize("address", WITHIN.split())
def test_an_address_within_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))
    with pytest.raises(NotAllowed, match=destination.NOT_PUBLIC):
        read_destination(at(address), allow_private=False)
    assert read_destination(at(address), allow_private=True).address == ip_address(address)


@pytest.mark.parametrize("address", OUTSIDE.split())
def test_an_address_on_the_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))
    assert read_destination(at(address), allow_private=False).address == ip_address(address)


@pytest.mark.parametrize("host", OTHER_FORMS.split())
def test_an_address_in_another_form_is_none(host: str) -> None:
    for form in (host, f"{host}."):
        with pytest.raises(NotAllowed, match="IPv4 address must be four"):
            read_destination(f"https://{form}/", allow_private=True)


NOT_URLS = ["", "https://hooks.example/" + "a" * 2048, "https://hooks.example/a b"]
NOT_URLS += ["https://hooks.example/\r\nHost: other"]
WRONG = {
    destination.NOT_A_URL: """
        https://hooks.example\\@127.0.0.1/ https://münchen.example/ https://①②⑦.⓪.⓪.①/
        https://hooks.example:port/ https://[::1/ https://[hooks.example]/
    """,
    destination.NOT_HTTPS: """
        http://hooks.example/ //hooks.example/ file:///etc/passwd gopher://hooks.example:443/
    """,
    destination.WITH_USER: """
        https://user:pw@hooks.example/ https://hooks.example@127.0.0.1/ https://@hooks.example/
    """,
    destination.WITH_FRAGMENT: "https://hooks.example/#part https://hooks.example/#",
    destination.OTHER_PORT: """
        https://hooks.example:8443/ https://hooks.example:0/ https://hooks.example:80/
    """,
    destination.NOT_A_HOST: """
        https:///path https://localhost/ https://metadata./ https://hooks..example/
        https://hooks.example../ https://-hooks.example/ https://%31%32%37.0.0.1/
        https://[fe80::1%25eth0]/
    """,
    destination.NOT_PUBLIC: "https://127.0.0.1./",
}


@pytest.mark.parametrize("why", WRONG)
def test_what_may_not_be_registered_says_why(why: str) -> None:
    for url in [*WRONG[why].split(), *(NOT_URLS if why == destination.NOT_A_URL else ())]:
        with pytest.raises(NotAllowed) as refused:
            pytest.fail(f"{url!r} is {read_destination(url, allow_private=False)}")
        assert str(refused.value) == why, url


def test_a_url_is_taken_apart() -> None:
    found = read_destination("https://Hooks.Example.:443/a/b%20c?d=e", allow_private=False)
    assert found == Destination("https", "hooks.example", 443, "/a/b%20c?d=e", None)
    assert read_destination("https://xn--mnchen-3ya.example", allow_private=False).path == "/"


def test_for_development_plain_http_any_port_and_names_of_this_network_do() -> None:
    found = read_destination("http://receiver:8081/hook", allow_private=True)
    assert found == Destination("http", "receiver", 8081, "/hook", None)
    assert read_destination("http://localhost", allow_private=True).port == 80
    with pytest.raises(NotAllowed, match="no user"):
        read_destination("http://user:pw@localhost/", allow_private=True)
