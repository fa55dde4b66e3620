"""Every setting, read from the environment only here; a wrong value stops the process.

Also how many threads answer HTTP, work, and may wait for the network.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import Field, dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from domain.cost import Cost
from domain.errors import ForOperator
from domain.money import CURRENCIES, format_amount, parse_amount

DEMO = {  # Defaults of `serve --demo` for settings that are unset.
    "COST_PER_LOOKUP": "offline=0.001",
    "NETWORK_BASE_PLAN": "demo-base",
}

WHOLE_DIGITS_MAX = 9
RATE_LIMIT_MAX = 999_999_999  # More than any process of ours answers in a minute.
# The password in the URL of a database or broker: up to the last @ before a comma, or a parameter.
PASSWORD = re.compile(r"(://[^:@/,]*:)[^,]*(?=@)|(\bpassword=)[^&,]+")
WITH_PASSWORDS = {"database_url", "finance_database_url", "broker_url"}

EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
# A path that no proxy rewrites. Below it, the first segments of our own paths.
PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
OWN = re.compile(r"/(v1|number-lookup|docs|llms\.txt|e|livez|readyz|networks|openapi\.json)(/|$)")

COST = rf"[0-9]{{1,12}}(?:\.[0-9]{{1,6}})?(?: (?:{'|'.join(CURRENCIES)}))?"
CONCURRENCY = 32  # Calls of a process at one provider, where no other number is set.

OUR_HOSTS = {"localhost", "127.0.0.1"}
ON = {"true", "1", "yes", "on"}
OFF = {"false", "0", "no", "off"}


class WrongSetting(ForOperator):
    """Raised with one line that names the setting and says what it should be."""


def _setting(
    meaning: str, default: str = "", parse: Callable[[str], Any] = str, *, secret: bool = False
) -> Any:
    metadata = {"meaning": meaning, "default": default, "parse": parse, "secret": secret}
    return field(metadata=metadata, repr=not secret)


def _must(be: str, is_so: Callable[[str], object]) -> Callable[[str], str]:
    """Return a check: it returns no text, or one that `is_so`; for others it raises ValueError."""

    def check(text: str) -> str:
        if text and not is_so(text):
            raise ValueError(f"must {be}")
        return text

    return check


_true_or_false = _must("be true or false", lambda text: text.lower() in ON | OFF)


def _switch(meaning: str, default: str = "false") -> Any:
    return _setting(meaning, default, lambda text: _true_or_false(text).lower() in ON)


def _whole(meaning: str, default: int, lowest: int, highest: int) -> Any:
    return _setting(meaning, str(default), _whole_from(lowest, highest))


def _whole_from(lowest: int, highest: int) -> Callable[[str], int]:
    def fits(text: str) -> bool:
        digits = text.isascii() and text.isdigit() and len(text) <= WHOLE_DIGITS_MAX
        return digits and lowest <= int(text) <= highest

    check = _must(f"be a whole number from {lowest} to {highest}", fits)
    return lambda text: int(check(text))


def _one_of(*choices: str) -> Callable[[str], str]:
    return _must(f"be one of: {', '.join(choices)}", choices.__contains__)


_sqlite = _must(
    "be sqlite:/// followed by the path of a file, or postgresql://user@host/name",
    lambda text: text.removeprefix("sqlite:///") not in {text, "", ":memory:"},
)


def _database(text: str) -> str:
    is_postgresql = text.startswith(("postgresql://", "postgres://"))
    return _postgresql(text) if is_postgresql else _sqlite(text)


def _names_a_database(url: str) -> bool:
    """Ask the driver's parser; no error of its is raised, as its text may hold a password."""
    from psycopg import ProgrammingError  # noqa: PLC0415  # SQLite does without the driver.
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415  # As above.

    try:
        parts = conninfo_to_dict(url)
        for host in str(parts.get("host") or "").split(","):
            host.partition("/")[0].encode("idna")  # As it is resolved; a socket's path is not.
    except (ProgrammingError, UnicodeError):
        return False
    return any(parts.get(name) for name in ("host", "hostaddr", "port", "dbname", "service"))


_postgresql = _must(
    "be postgresql://user:password@host/name that the driver can read: "
    "known options only, and %, @, / and spaces of a password percent-encoded",
    _names_a_database,
)
_amqp = _must(
    "be memory://, or amqp://user@host/vhost (several comma-separated)",
    lambda text: all(each.strip().startswith(("amqp://", "amqps://")) for each in text.split(",")),
)


def _broker(text: str) -> str:
    return text if text == "memory://" else _listed(_amqp(text))


def _listed(text: str) -> str:
    return ",".join(each.strip() for each in text.split(","))


def _is_plain_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        well_formed = parts.hostname is not None and (parts.port is None or parts.port > 0)
    except ValueError:  # The port is not a number, or the brackets hold no address.
        return False
    spaced = any(character.isspace() for character in text)
    plain = not (spaced or parts.query or parts.fragment or parts.username)
    return well_formed and plain and parts.scheme in {"http", "https"}


_plain_url = _must("be an http or https URL without query and fragment", _is_plain_url)
_safe_sink = _must(
    "be a directory, or an https URL without query and fragment",
    lambda url: not url.startswith("http://") or urlsplit(url).hostname in OUR_HOSTS,
)
_email = _must("be an e-mail address", EMAIL.fullmatch)
_path = _must(
    "be a path such as /bappy, of plain characters, that is not one of ours",
    lambda text: PATH.fullmatch(text) and not OWN.match(text),
)
_no_token_path = _must(
    "not be a path of the token operation", lambda path: path.split("/")[1:2] != ["auth"]
)
_currency = _must("be a currency code of ISO 4217, such as USD", CURRENCIES.__contains__)
_once = _must("name each provider once", lambda text: len({*text.split(",")}) > text.count(","))


def _url(text: str) -> str:
    return _plain_url(text).rstrip("/")


def _sink(text: str) -> str:
    return _safe_sink(_url(text) if "://" in text else text)


def _prefix(text: str) -> str:
    return _path(_no_token_path(text.rstrip("/")))


def _token_paths(text: str) -> str:
    return ",".join(_path(each.strip()) for each in text.split(",") if each.strip())


def _names(text: str) -> str:
    return _once(_listed(text))


def _amount(text: str) -> int:
    try:
        return parse_amount(text)
    except ValueError:
        raise ValueError("must be an amount with at most six decimals, such as 0.005") from None


def _by_provider(
    value: str, form: str, read: Callable[[str], Any] = str
) -> Callable[[str], dict[str, Any]]:
    """Return what reads a value for each provider; `read` may refuse some that have the form."""
    pattern = re.compile(rf"\s*([a-z0-9_-]+)=({value})\s*", re.ASCII)

    def parse(text: str) -> dict[str, str]:
        found = {it[1]: it[2] for it in map(pattern.fullmatch, text.split(",")) if it}
        rule = f"be provider={form}"
        _must(rule, lambda _: len(found) > text.count(","))(text)
        return {name: read(each) for name, each in found.items()}

    return parse


_costs = _by_provider(COST, "amount, each provider once, such as offline=0, other=0.008 EUR")


def _wholes(lowest: int, highest: int) -> Callable[[str], dict[str, int]]:
    form = "number, each provider once, such as twilio=0, telnyx=60"
    return _by_provider("[0-9]+", form, _whole_from(lowest, highest))


def _file(text: str) -> Path | None:
    path = _must(f"name a file that exists, not {text}", os.path.isfile)(text)
    return Path(path) if path else None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings. Amounts are micro-units; the names of durations say their unit."""

    database_url: str = _setting("where the log is kept", "sqlite:///var/service.db", _database)
    finance_database_url: str = _setting(
        "how `finance` reaches the database, as a role that can only read; empty: DATABASE_URL",
        "",
        _database,
    )
    service_role: str = _setting(
        "the role of the processes on PostgreSQL, which cannot change events; `migrate` sets it up"
    )
    broker_url: str = _setting("where messages wait for workers", "memory://", _broker)
    quorum_queues: bool = _switch(
        "whether RabbitMQ keeps the queues on several machines; queues that exist keep their kind"
    )
    host: str = _setting("the address that serve and web listen on", "127.0.0.1")
    port: int = _whole("the port that serve and web listen on", 8080, 0, 65_535)
    share_port: bool = _switch("whether several `web` share PORT")
    public_url: str = _setting("how clients reach this service", "", _url)
    auth_url: str = _setting("how clients reach /auth and /.well-known", "", _url)
    numbers_url: str = _setting("how clients reach /number-lookup", "", _url)
    base_url: str = _setting("how clients reach /v1", "", _url)
    contact_email: str = _setting("whom partners ask; shown in the API's document", "", _email)
    issuer: str = _setting("who issues statements: a name and address for their pages")
    path_prefix: str = _setting("a path that all is served below too, such as /bappy", "", _prefix)
    token_paths: str = _setting("further paths of the token operation", "", _token_paths)
    request_read_s: int = _whole(
        "how long the head and body of a request may take to come in", 10, 1, 300
    )
    # Longer than proxies keep their connections, so that the proxy closes first.
    keep_alive_s: int = _whole("how long a connection may stay open without a request", 75, 1, 3600)
    rate_limit_per_minute: int = _whole(
        "how many requests a minute an organization may send, unless it has a limit of its own; "
        "0: any number",
        0,
        0,
        RATE_LIMIT_MAX,
    )
    trusted_proxies: int = _whole("how many proxies in front set X-Forwarded-For", 0, 0, 16)
    lookup_provider: str = _setting(
        "who answers lookups; of several, the next is asked while one is unavailable",
        "offline",
        _names,
    )
    mcc_mnc_file: Path | None = _setting("an own table of MCC/MNC codes (CSV)", "", _file)
    price_per_lookup_micros: int | None = _setting(
        "what a lookup costs, at the first start; then the price is in the log: `prices lookup`",
        "",
        lambda text: _amount(text) if text else None,
    )
    cost_per_lookup: Mapping[str, str] = _setting(
        "what providers take for a lookup, such as offline=0, other=0.008 EUR; others: not known",
        "",
        _costs,
    )
    currency: str = _setting("the one currency of this installation (ISO 4217)", "USD", _currency)
    number_lookup_enabled: bool = _switch("whether lookups are on at all", "true")
    lookup_cache_ttl_s: int = _whole(
        "how long an answer of a remote provider is kept, 0 for never", 86400, 0, 31_536_000
    )
    lookup_cache_ttls_s: Mapping[str, int] = _setting(
        "how long answers of single providers are kept, such as twilio=0, telnyx=3600",
        "",
        _wholes(0, 31_536_000),
    )
    lookup_concurrency: Mapping[str, int] = _setting(
        "how many calls a process has under way at a provider, such as telnyx=16; others: 32",
        "",
        _wholes(1, 256),
    )
    twilio_account_sid: str = _setting("our account at Twilio: AC and 32 digits")
    twilio_api_key: str = _setting("the SID of an API key; empty: the account's own token")
    twilio_auth_token: str = _setting(
        "the token of the account, or the secret of TWILIO_API_KEY", secret=True
    )
    twilio_lookups_url: str = _setting(
        "the base URL of Twilio's lookups", "https://lookups.twilio.com", _url
    )
    twilio_api_url: str = _setting("the base URL of its accounts", "https://api.twilio.com", _url)
    telnyx_api_key: str = _setting("our API key at Telnyx", secret=True)
    telnyx_url: str = _setting("the base URL of Telnyx's API", "https://api.telnyx.com/v2", _url)
    bulk_numbers_max: int = _whole("how many numbers a job may have", 1000, 1, 15_000)
    job_items_open_max: int = _whole(
        "how many numbers of an organization's jobs may be open at once", 100000, 1_000, 100_000_000
    )
    network_provider: str = _setting(
        "the networks that links run on, comma-separated; plans that name none get the first",
        "simulated",
        _names,
    )
    network_base_plan: str = _setting(
        "the network's default base plan; without it no link can be created", "", str
    )
    network_esim_product: str = _setting("the eSIM product to take; empty: any")
    esimgo_api_key: str = _setting(
        "our API key at eSIM Go, which also signs what it sends", secret=True
    )
    esimgo_url: str = _setting(
        "the base URL of eSIM Go's API", "https://api.esim-go.com/v2.5", _url
    )
    esimgo_refunds: bool = _switch(
        "whether eSIM Go pays unused bundles back to our account; it does not by default"
    )
    airalo_client_id: str = _setting("our client id at Airalo")
    airalo_client_secret: str = _setting("its secret", secret=True)
    airalo_url: str = _setting(
        "the base URL of Airalo's Partner API", "https://partners-api.airalo.com/v2", _url
    )
    bics_url: str = _setting("the API of the network bics", "https://sft.bics.com/api", _url)
    bics_username: str = _setting("the user of the API of bics")
    bics_password: str = _setting("its password", secret=True)
    bics_roaming_profile: str = _setting("the roaming profile at bics of new endpoints")
    bics_apn_group: str = _setting("the APN group at bics of new endpoints")
    provisioning_deadline_s: int = _whole(
        "how long creating a link or changing its plans may take", 15, 1, 60
    )
    link_cancel_days: int = _whole(
        "how long after its creation an unused link can be cancelled for its money, 0 for never",
        0,
        0,
        365,
    )
    readings_refresh_s: int = _whole(
        "how old the usage of a link may get before it is read in the background; 0: never read",
        900,
        0,
        86_400,
    )
    token_ttl_s: int = _whole("how long a token lives", 3600, 120, 86_400)
    token_issuer: str = _setting("the issuer of tokens; empty: AUTH_URL", "", _url)
    token_audience: str = _setting("the audience of tokens", "carrier-links")
    token_algorithm: Literal["RS256", "ES256"] = _setting(
        "how tokens are signed", "RS256", _one_of("RS256", "ES256")
    )
    signing_keys: Path = _setting("the directory of the signing keys (mode 0700)", "var/keys", Path)
    secret_pepper: str = _setting(
        "the key of secret hashes; empty: kept beside the signing keys", secret=True
    )
    operator_key: str = _setting(
        "the key of the operator who runs a command; better in a file: OPERATOR_KEY_FILE",
        secret=True,
    )
    checkpoint_every_s: int = _whole(
        "how often the log is signed for others to keep", 3600, 60, 86_400
    )
    checkpoint_lag_s: int = _whole(
        "how old an event must be to be signed, where no standby is synchronous", 60, 0, 86_400
    )
    checkpoint_sink: str = _setting(
        "where checkpoints are brought: a directory that others keep, or an https address",
        "",
        _sink,
    )
    redo_dir: str = _setting(
        "a directory of its own, apart from the database, for the list of what must be done again "
        "after a restore; empty: there is none"
    )
    webhooks_allow_private: bool = _switch(
        "whether webhooks may lead to private addresses, by http and to any port: for development"
    )
    sandbox: bool = _switch("whether sandbox numbers and plans fail on demand")
    log_format: Literal["text", "json"] = _setting(
        "how log lines look", "text", _one_of("text", "json")
    )
    metrics_port: int = _whole("the port of /metrics, 0 for none", 0, 0, 65_535)
    otel_exporter_otlp_endpoint: str = _setting(
        "where spans go, the URL of a collector (OTLP over HTTP); empty: nothing is traced",
        "",
        _url,
    )

    @classmethod
    def from_env(cls, environment: Mapping[str, str]) -> Self:
        """Read every setting; raises WrongSetting for the first wrong one, or a misspelt name."""
        _refuse_misspelt([name_of(each.name) for each in fields(cls)], environment)
        values: dict[str, Any] = {}
        for each in fields(cls):
            text = _text_of(each, environment).strip() or each.metadata["default"]
            try:
                values[each.name] = each.metadata["parse"](text)
            except ValueError as error:
                raise WrongSetting(f"{name_of(each.name)} {error}") from None
        if values["job_items_open_max"] < values["bulk_numbers_max"]:
            raise WrongSetting(
                "JOB_ITEMS_OPEN_MAX must be at least BULK_NUMBERS_MAX, or such a job never fits"
            )
        if redo := values["redo_dir"]:
            keys, own = values["signing_keys"].absolute(), Path(redo).absolute()
            if own.is_relative_to(keys) or keys.is_relative_to(own):
                message = "REDO_DIR must not be in SIGNING_KEYS or around it: backups hold the keys"
                raise WrongSetting(message)
        return cls(**values)

    @classmethod
    def load(cls, *, demo: bool = False) -> Self:
        """Read the settings of this process; a demo has other defaults."""
        unset = {name: text for name, text in DEMO.items() if not os.environ.get(f"{name}_FILE")}
        return cls.from_env({**(unset if demo else {}), **os.environ})

    @property
    def database_path(self) -> Path:
        """The file of the log; the read models and stores are beside it."""
        return Path(self.database_url.removeprefix("sqlite:///"))

    @property
    def is_on_files(self) -> bool:
        """Whether the database is SQLite."""
        return self.database_url.startswith("sqlite:")

    @property
    def has_own_broker(self) -> bool:
        """Whether the queues are inside this process."""
        return self.broker_url == "memory://"

    @property
    def broker_shown(self) -> str:
        """The URLs of the broker without user and password."""
        return re.sub(r"(?<=://)[^,]*@", "", self.broker_url)

    @property
    def networks(self) -> list[str]:
        """The names of the networks, the default one first."""
        return self.network_provider.split(",")

    @property
    def lookup_providers(self) -> list[str]:
        """Who answers lookups, in the order in which they are asked."""
        return self.lookup_provider.split(",")

    @property
    def lookup_cache_ttls(self) -> dict[str, timedelta]:
        """How long answers are kept, by provider, where it is not `lookup_cache_ttl_s`."""
        return {name: timedelta(seconds=s) for name, s in self.lookup_cache_ttls_s.items()}

    @property
    def lookups_at_once(self) -> dict[str, int]:
        """How many calls a process may have under way, by provider."""
        return {**dict.fromkeys(self.lookup_providers, CONCURRENCY), **self.lookup_concurrency}

    @property
    def lookup_costs(self) -> dict[str, Cost]:
        """What a lookup costs, by provider; the cost of a missing one is not known."""
        costs = {name: each.partition(" ") for name, each in self.cost_per_lookup.items()}
        return {n: Cost(parse_amount(it[0]), it[2] or self.currency) for n, it in costs.items()}

    @property
    def public(self) -> str:
        """The URL at which clients reach this service."""
        if self.public_url:
            return self.public_url
        host = "localhost" if self.host in {"0.0.0.0", "::", ""} else self.host  # noqa: S104  # Read, not bound.
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def further_token_paths(self) -> list[str]:
        return [path for path in self.token_paths.split(",") if path]

    @property
    def auth(self) -> str:
        """The URL at which clients reach the token endpoint."""
        return self.auth_url or self.public

    @property
    def numbers(self) -> str:
        """The URL at which clients reach the lookup operations."""
        return self.numbers_url or self.public

    @property
    def base(self) -> str:
        """The URL at which clients reach /v1."""
        return self.base_url or self.public

    @property
    def checkpoint_origin(self) -> str:
        """What checkpoints call this installation: its public URL without the scheme."""
        return self.public.partition("://")[2]

    @property
    def iss(self) -> str:
        """The `iss` of tokens (RFC 8414 §2)."""
        return self.token_issuer or self.auth

    def describe(self) -> list[dict[str, str]]:
        """Return every setting with its value, default and meaning; secrets are masked."""
        return [
            {
                "name": name_of(each.name),
                "value": _show(each.name, getattr(self, each.name), each.metadata["secret"]),
                "default": each.metadata["default"],
                "meaning": each.metadata["meaning"],
            }
            for each in fields(self)
        ]


def _refuse_misspelt(names: list[str], environment: Mapping[str, str]) -> None:
    """Refuse what is within two edits of a name, or of its name with _FILE; of a short one, one.

    Two edits of four letters would make HOST of HOME. Other programs have names of their own.
    """
    known = {name: {*name} for name in (*names, *(f"{name}_FILE" for name in names))}
    for given in environment.keys() - known.keys():
        letters = {*given}
        for name, its in known.items():
            edits = min(2, (len(name) - 1) // 2)
            if len(letters ^ its) <= 2 * edits and _is_like(given, name, edits):
                raise WrongSetting(f"{given} is no setting; {name} is")


def _is_like(given: str, name: str, edits: int) -> bool:
    """Tell whether so many insertions, deletions and replacements make one text of the other."""
    if abs(len(given) - len(name)) > edits:
        return False
    same = next((at for at, (a, b) in enumerate(zip(given, name, strict=False)) if a != b), None)
    if same is None:  # One begins with the other.
        return True
    a, b = given[same:], name[same:]
    return edits > 0 and any(
        _is_like(*each, edits - 1) for each in ((a[1:], b[1:]), (a[1:], b), (a, b[1:]))
    )


def _text_of(setting: Field[Any], environment: Mapping[str, str]) -> str:
    """Return what is set, or what stands in the file that its name with _FILE names."""
    name = name_of(setting.name)
    text, path = environment.get(name, ""), environment.get(f"{name}_FILE", "")
    if not path:
        return text
    if text.strip():
        raise WrongSetting(f"{name} and {name}_FILE are both set: set one of them")
    # The path is not repeated, because it may be the secret itself, given by mistake.
    wrong = f"{name}_FILE must name a file of text that can be read and is not empty"
    encoding = "utf-8" if name == "SECRET_PEPPER" else "utf-8-sig"  # A pepper keeps its mark.
    try:
        text = Path(path).read_text(encoding)
    except OSError as error:
        raise WrongSetting(f"{wrong}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WrongSetting(wrong) from error
    if not text.strip():
        raise WrongSetting(wrong)
    return text


def notify_socket() -> str:
    """Return the address at which systemd listens for this process, as sockets take it; or ""."""
    return os.environ.get("NOTIFY_SOCKET", "").replace("@", "\0", 1)


def secrets_open_to_all() -> Iterator[str]:
    """Yield the settings whose secret stands in a file that every user of the machine may read.

    A mount that cannot be written does not count: whoever runs a container sets its modes.
    """
    for each in fields(Settings):
        name = f"{name_of(each.name)}_FILE"
        is_secret = each.metadata["secret"] or each.name in WITH_PASSWORDS
        path = os.environ.get(name, "") if is_secret else ""
        with suppress(OSError):  # A file that is not there has no mode.
            is_open = path and Path(path).stat().st_mode & stat.S_IROTH
            if is_open and not os.statvfs(path).f_flag & os.ST_RDONLY:
                yield name


def name_of(attribute: str) -> str:
    """Return the environment variable of a field: its name without the internal unit."""
    return attribute.removesuffix("_micros").upper()


def _show(name: str, value: Any, secret: bool) -> str:  # noqa: FBT001  # Straight from the metadata.
    if secret:
        return "********" if value else ""
    if name in WITH_PASSWORDS:
        return PASSWORD.sub(r"\1\2********", value)
    if name.endswith("_micros") and value is not None:
        return format_amount(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ",".join(f"{provider}={each}" for provider, each in value.items())
    return "" if value is None else str(value)


HTTP_THREADS = 80  # As many requests may wait for the log or the network; fewer compute at once.
# The other half serves requests that need not wait for the network.
WAITING_MAX = HTTP_THREADS // 2
# Replies that are sent while they are read: each holds a thread for as long as its reader takes.
DOWNLOADS_MAX = 16
DOWNLOADS_OF_ONE_MAX = 4  # Of one organization, so that three others still begin theirs.

LOOKUP_THREADS = 8  # One organization gets half of them, which keeps a core busy.
# As many as may wait for the network, so none of these queues behind a call that hangs.
PROVISION_THREADS = WAITING_MAX
# Nearly all of them wait for an endpoint. If fifty endpoints hang at once, a quarter of the threads
# stays free, although the first of these endpoints hold four threads each.
WEBHOOK_THREADS = 96
BILLING_THREADS = 1  # Its charges mostly wait for the disk, and no other work uses its queue.
