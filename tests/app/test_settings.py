"""Settings: every one has a default and a meaning, and a wrong one is named in one line."""

from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from app.settings import Settings, WrongSetting, name_of
from domain.cost import Cost

SEVERAL = "postgresql://u:p@pg-1:5432,pg-2:5432/service?target_session_attrs=read-write"
DEFAULTS = Settings.from_env({})


def test_nothing_needs_to_be_set() -> None:
    assert DEFAULTS.database_path == Path("var/service.db")
    assert (DEFAULTS.host, DEFAULTS.port, DEFAULTS.currency) == ("127.0.0.1", 8080, "USD")
    assert (DEFAULTS.price_per_lookup_micros, DEFAULTS.sandbox) == (None, False)
    assert DEFAULTS.lookup_cache_ttl_s == 86_400
    assert DEFAULTS.public == DEFAULTS.iss == "http://127.0.0.1:8080"


def test_an_empty_value_is_the_default_and_what_nobody_asked_for_is_ignored() -> None:
    assert Settings.from_env({"PORT": "", "CURRENCY": "  ", "PUBLIC_URL": ""}) == DEFAULTS
    assert Settings.from_env({"PATH": "/bin", "port": "1", "SOMETHING": "else"}) == DEFAULTS


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("RATE_LIMIT_PER_MINUT", "RATE_LIMIT_PER_MINUTE"),
        ("RATE_LIMITS_PER_MINUTES", "RATE_LIMIT_PER_MINUTE"),
        ("TWILIO_AUTH_TOKN_FILE", "TWILIO_AUTH_TOKEN_FILE"),
        ("CURRENYC", "CURRENCY"),
        ("DATABASE_URI", "DATABASE_URL"),
        ("HOSTS", "HOST"),
        ("PUBLICURL_FILE", "PUBLIC_URL_FILE"),
        ("ISSUER_", "ISSUER"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_one_that_is_meant(wrong: str, meant: str) -> None:
    with pytest.raises(WrongSetting) as refused:
        Settings.from_env({"PATH": "/bin", wrong: "a secret"})
    assert str(refused.value) == f"{wrong} is no setting; {meant} is"


OTHERS = """
DATABASE_PORT BROKER_SERVICE_HOST BROKER_PORT_5672_TCP_ADDR OWNER_DATABASE_URL HOME PWD USER
TERM SHELL MAIL PGHOST PGPORT PGUSER HOSTNAME USERNAME LOGNAME LANG LC_ALL TZ CI PATH
PORTS_OF_CALL DATABASE_NAME AUTH_PORT BASE_DIR METRICS_SERVICE_PORT OTEL_SERVICE_NAME
WEB_CONCURRENCY TMPDIR HTTP_PROXY HTTPS_PROXY NO_PROXY AWS_REGION POSTGRES_PASSWORD_FILE
RABBITMQ_NODE_PORT EDITOR PAGER
"""


@pytest.mark.parametrize("name", OTHERS.split())
def test_names_of_other_programs_are_left_alone(name: str) -> None:
    assert Settings.from_env({name: "tcp://10.0.0.1:5432"}) == DEFAULTS


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("PRICE_PER_LOOKUP", "0.005", 5_000),
        ("PRICE_PER_LOOKUP", " 0 ", 0),
        ("PORT", "0", 0),
        ("PORT", "65535", 65_535),
        ("SANDBOX", "TRUE", True),
        ("SANDBOX", "on", True),
        ("NUMBER_LOOKUP_ENABLED", "No", False),
        ("LOOKUP_CACHE_TTL_S", "0", 0),
        ("BULK_NUMBERS_MAX", "1", 1),
        ("BULK_NUMBERS_MAX", "15000", 15_000),
        ("TOKEN_TTL_S", "120", 120),
        ("TOKEN_ALGORITHM", "ES256", "ES256"),
        ("CURRENCY", "EUR", "EUR"),
        ("DATABASE_URL", SEVERAL, SEVERAL),
        ("PUBLIC_URL", "https://api.example.com/links/", "https://api.example.com/links"),
        ("SIGNING_KEYS", "/srv/keys", Path("/srv/keys")),
        ("LOG_FORMAT", "json", "json"),
        ("TRUSTED_PROXIES", "2", 2),
    ],
)
def test_a_right_value_is_read(name: str, text: str, value: object) -> None:
    settings = Settings.from_env({name: text})
    (attribute,) = (each.name for each in fields(Settings) if name_of(each.name) == name)
    assert getattr(settings, attribute) == value


def test_what_is_set_by_provider_is_read() -> None:
    given = {
        "LOOKUP_PROVIDER": "twilio, offline",
        "LOOKUP_CACHE_TTLS_S": "twilio=0, far=60 ",
        "LOOKUP_CONCURRENCY": "twilio=8",
    }
    settings = Settings.from_env(given)
    assert settings.lookup_providers == ["twilio", "offline"]
    assert settings.lookup_cache_ttls == {"twilio": timedelta(0), "far": timedelta(minutes=1)}
    assert settings.lookups_at_once == {"twilio": 8, "offline": 32}
    assert (DEFAULTS.lookup_cache_ttls, DEFAULTS.lookups_at_once) == ({}, {"offline": 32})


def test_costs_are_in_the_currency_of_the_installation_unless_they_name_one() -> None:
    given = {"COST_PER_LOOKUP": "offline=0, far=0.008 EUR ", "CURRENCY": "CHF"}
    settings = Settings.from_env(given)
    assert {"offline=0,far=0.008 EUR"} < {each["value"] for each in settings.describe()}
    assert settings.lookup_costs == {"offline": Cost(0, "CHF"), "far": Cost(8_000, "EUR")}
    assert DEFAULTS.lookup_costs == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DATABASE_URL", "mysql://somewhere"),
        ("DATABASE_URL", "postgresql://"),
        ("DATABASE_URL", "postgresql://[half"),
        ("DATABASE_URL", "postgresql://pg-1,pg..example/service"),
        ("DATABASE_URL", "postgresql://service:pa%zz@db/service"),
        ("DATABASE_URL", "postgresql://service:pa zz@db/service"),
        ("DATABASE_URL", "postgresql://service:pazz@db/service?sslmod=require"),
        ("DATABASE_URL", "sqlite:///"),
        ("DATABASE_URL", "sqlite:///:memory:"),
        ("DATABASE_URL", "service.db"),
        ("BROKER_URL", "redis://somewhere"),
        ("BROKER_URL", "amqp://one,redis://other"),
        ("PORT", "-1"),
        ("PORT", "65536"),
        ("PORT", "8080.0"),
        ("PORT", "८०८०"),
        ("PRICE_PER_LOOKUP", "-0.01"),
        ("PRICE_PER_LOOKUP", "0.0000001"),
        ("PRICE_PER_LOOKUP", "1e-3"),
        ("PRICE_PER_LOOKUP", "half a cent"),
        *[
            ("COST_PER_LOOKUP", wrong)
            for wrong in ("0.1", "a=", "a=-1", "a=1 XXX", "a=1,a=2", "a=1,,b=2", "a=1 eur", "a=1e3")
        ],
        *[("LOOKUP_CACHE_TTLS_S", wrong) for wrong in ("60", "a=", "a=-1", "a=1,a=2", "a=1e3")],
        *[("LOOKUP_CONCURRENCY", wrong) for wrong in ("a=0", "a=257", "a=1,,b=2")],
        ("LOOKUP_PROVIDER", "offline,offline"),
        ("CURRENCY", "usd"),
        ("CURRENCY", "US"),
        ("CURRENCY", "ÄÖÜ"),
        ("CURRENCY", "UDS"),
        ("SANDBOX", "maybe"),
        ("NUMBER_LOOKUP_ENABLED", "2"),
        ("LOOKUP_CACHE_TTL_S", "a day"),
        ("BULK_NUMBERS_MAX", "0"),
        ("BULK_NUMBERS_MAX", "15001"),
        ("TOKEN_TTL_S", "119"),
        ("TOKEN_TTL_S", "9" * 5_000),
        ("TOKEN_ALGORITHM", "HS256"),
        ("TOKEN_ALGORITHM", "none"),
        ("CONTACT_EMAIL", "partners at acme.test"),
        ("PUBLIC_URL", "api.example.com"),
        ("PUBLIC_URL", "ftp://api.example.com"),
        ("PUBLIC_URL", "https://api.example.com/?a=b"),
        ("PUBLIC_URL", "https://api.example.com/#top"),
        ("BASE_URL", "https://["),
        ("BASE_URL", "http://x:abc/"),
        ("NUMBERS_URL", "http://x/ y"),
        ("AUTH_URL", "http://me@x/"),
        ("TRUSTED_PROXIES", "all"),
        ("MCC_MNC_FILE", "/nowhere/mcc_mnc.csv"),
        ("LOG_FORMAT", "xml"),
    ],
)
def test_a_wrong_value_is_named_in_one_line(name: str, text: str) -> None:
    with pytest.raises(WrongSetting) as refused:
        Settings.from_env({name: text})
    line = str(refused.value)
    assert line.startswith(f"{name} ")
    assert "\n" not in line
    assert "zz" not in line, "it may be a password"


def test_the_largest_job_has_to_fit_among_what_may_be_open() -> None:
    most = {"BULK_NUMBERS_MAX": "2000", "JOB_ITEMS_OPEN_MAX": "1999"}
    with pytest.raises(WrongSetting, match=r"^JOB_ITEMS_OPEN_MAX must be at least"):
        Settings.from_env(most)
    assert Settings.from_env(most | {"JOB_ITEMS_OPEN_MAX": "2000"}).job_items_open_max == 2_000


def test_a_file_of_codes_has_to_exist(tmp_path: Path) -> None:
    table = tmp_path / "codes.csv"
    table.write_text("")
    assert Settings.from_env({"MCC_MNC_FILE": str(table)}).mcc_mnc_file == table


def test_urls_follow_the_public_one_unless_they_are_set() -> None:
    public = {"PUBLIC_URL": "https://one.example"}
    settings = Settings.from_env(public)
    together = (settings.auth, settings.numbers, settings.base, settings.iss)
    assert together == ("https://one.example",) * 4
    settings = Settings.from_env({**public, "AUTH_URL": "https://two.example/oauth"})
    assert settings.iss == settings.auth == "https://two.example/oauth"
    assert settings.base == "https://one.example"
    settings = Settings.from_env({**public, "TOKEN_ISSUER": "https://three.example"})
    assert (settings.iss, settings.auth) == ("https://three.example", "https://one.example")


def test_every_setting_is_described_with_its_value_default_and_meaning() -> None:
    described = Settings.from_env(
        {"PRICE_PER_LOOKUP": "0.0050", "SANDBOX": "1", "CURRENCY": "EUR"}
    ).describe()
    assert [each["name"] for each in described] == [name_of(each.name) for each in fields(Settings)]
    assert all(each["meaning"] for each in described)
    values = {each["name"]: each["value"] for each in described}
    assert values["PRICE_PER_LOOKUP"] == "0.005"
    assert (values["SANDBOX"], values["CURRENCY"], values["MCC_MNC_FILE"]) == ("true", "EUR", "")


def test_what_is_described_can_be_set_again() -> None:
    environment = {"PORT": "9000", "PRICE_PER_LOOKUP": "1.25", "SANDBOX": "true"}
    settings = Settings.from_env(environment)
    described = {each["name"]: each["value"] for each in settings.describe()}
    assert Settings.from_env(described) == settings


def test_a_secret_is_never_shown() -> None:
    canary = "a-pepper-that-nobody-may-see"
    settings = Settings.from_env({"SECRET_PEPPER": canary})
    assert canary not in f"{settings!r} {settings.describe()}"
    assert "********" in {each["value"] for each in settings.describe()}


def test_a_demo_has_defaults_of_its_own_that_the_environment_overrides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for each in fields(Settings):
        monkeypatch.delenv(name_of(each.name), raising=False)
    assert Settings.load() == DEFAULTS
    assert Settings.load(demo=True).network_base_plan == "demo-base"
    monkeypatch.setenv("PRICE_PER_LOOKUP", "0.01")
    assert Settings.load(demo=True).price_per_lookup_micros == 10_000


@pytest.mark.parametrize(
    ("host", "public"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("::1", "http://[::1]:8080"),
        ("0.0.0.0", "http://localhost:8080"),  # noqa: S104  # Only read here.
        ("::", "http://localhost:8080"),
    ],
)
def test_the_public_url_follows_the_address_that_is_listened_on(host: str, public: str) -> None:
    assert Settings.from_env({"HOST": host}).public == public


@pytest.mark.parametrize(
    ("name", "value", "mark"),
    [("PORT", "7", "\ufeff"), ("SECRET_PEPPER", "a secret", ""), ("CURRENCY", "EUR", "\ufeff")],
)
def test_a_setting_can_stand_in_a_file(name: str, value: str, mark: str, tmp_path: Path) -> None:
    by_file, file = {f"{name}_FILE": str(tmp_path / "given")}, tmp_path / "given"
    for wrong in (None, b"", b" \n", b"\xff"):
        if wrong is not None:
            file.write_bytes(wrong)
        with pytest.raises(WrongSetting) as refused:
            Settings.from_env(by_file)
        line = str(refused.value)
        assert line.startswith(f"{name}_FILE must name a file of text that can be read")
        assert "\n" not in line
    file.write_text(f"{mark} {value}\n")
    settings = Settings.from_env({**by_file, name: ""})
    assert settings == Settings.from_env({name: value}) != DEFAULTS
    with pytest.raises(WrongSetting, match=rf"^{name} and {name}_FILE are both set"):
        Settings.from_env({name: value, **by_file})


def test_a_secret_that_stands_where_its_file_should_is_not_repeated() -> None:
    with pytest.raises(WrongSetting) as refused:
        Settings.from_env({"DATABASE_URL_FILE": "postgresql://u:hunter2@pg/service"})
    assert "hunter2" not in str(refused.value)


def test_a_file_also_overrides_a_default_of_the_demo(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "price").write_text("0.01")
    monkeypatch.setenv("PRICE_PER_LOOKUP_FILE", str(tmp_path / "price"))
    monkeypatch.delenv("PRICE_PER_LOOKUP", raising=False)
    assert Settings.load(demo=True).price_per_lookup_micros == 10_000
