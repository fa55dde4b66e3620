"""The OpenAPI document, and the pages for people: the guides of docs/partners and the reference.

A page loads nothing from another host, and all its links are relative, so it also works below a
path. All are Markdown; what they look like is in `static`.
"""

import re
from functools import cache, cached_property, lru_cache
from html import escape
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

from flask import Blueprint, Response
from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from app.http.edge.compression import Cached
from app.http.edge.media import TEMPLATES
from app.http.edge.openapi import FACTS
from app.http.edge.replies import Answer, respond
from app.http.edge.request import CURRENT, below, current_request
from app.http.reference import Reference, slug
from domain.errors import NotFound

GUIDES = Path(__file__).parents[2] / "docs" / "partners"
STATIC = Path(__file__).parent / "static"
SWAGGER_UI_FILES = files("flask_swagger_ui") / "dist"  # Without the package no process starts.
SWAGGER_UI = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
TYPES = SWAGGER_UI | {
    "docs.css": "text/css",
    "docs.js": "text/javascript",
    "link-states.svg": "image/svg+xml",
    "icon.svg": "image/svg+xml",
    "try.js": "text/javascript",
}
DOCUMENT = "openapi_document"
REVALIDATED = "no-cache"
CACHED = "public, max-age=3600"
ROOTS_MAX = 8  # Of one installation there are two: with PATH_PREFIX and without.

# The page may run and load only what we ship, although it shows only our own document.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

HOME = "index"
SAMPLE_URL = re.compile(r"\b(AUTH|NUMBERS|BASE)_URL( = \"|=)https://api\.example")
REFERENCE = "reference"
HEADING = re.compile(r"^\*\*(.+)\*\*$", re.MULTILINE)
NO_WORDS = re.compile(r"[`*\[]|\]\([^)]*\)")
LISTED = re.compile(r"\]\(([\w-]+)\.md\)")
PAGE = re.compile(r"([\w-]+)\.md(?=#|$)")
ERROR_CODE = re.compile(r"`([A-Z_]+)`")
COLOURS = HtmlFormatter(nowrap=True)

blueprint = Blueprint("docs", __name__)


@blueprint.get("/openapi.json")
def openapi_document() -> Response:
    """Return the OpenAPI document, which was made together with the app."""
    document = CURRENT.get().extensions[DOCUMENT][current_request().script_root]
    return _static(document, "application/json", REVALIDATED)


@blueprint.get("/llms.txt")
def index_for_models() -> Response:
    return _static(_pages().index, "text/plain", REVALIDATED)


@blueprint.get("/docs")
def docs() -> Response:
    return _page(HOME)


@blueprint.get("/", defaults={"target": "docs"})
@blueprint.get("/docs/", defaults={"target": "../docs"})
def redirect(target: str) -> Response:
    """Redirect to the page whose address has no slash, from which its relative links lead on."""
    return respond(Answer({"docs": target}, 302, {"Location": target}))


@blueprint.get("/docs/<name>")
def page_or_asset(name: str) -> Response:
    if name == HOME:
        raise NotFound  # It is at /docs; from here its relative links would lead nowhere.
    if name not in TYPES:
        return _page(name)
    # Our files may change with each release; the library's are large and seldom change.
    return _static(asset(name), TYPES[name], CACHED if name in SWAGGER_UI else REVALIDATED)


@cache
def asset(name: str) -> Cached:
    """Return a file that pages load; those of Swagger UI come from its package."""
    if name in SWAGGER_UI:
        return Cached((SWAGGER_UI_FILES / name).read_bytes())
    path = STATIC / name if (STATIC / name).exists() else GUIDES / name
    return Cached(path.read_bytes())


def _page(name: str) -> Response:
    response = _static(_pages().page(name), "text/html", REVALIDATED)
    response.headers["Content-Security-Policy"] = POLICY
    return response


def _pages() -> "Pages":
    """Return the pages for people who reach us as this request did."""
    settings, root = CURRENT.get().parts.settings, current_request().script_root
    urls = (settings.auth, settings.numbers, settings.base, settings.public)
    return pages(*(below(url, root) for url in urls), CURRENT.get().extensions[DOCUMENT][root])


def _static(content: Cached, media_type: str, cache_control: str) -> Response:
    response = Response(content, mimetype=media_type)
    response.headers["Cache-Control"] = cache_control
    response.headers["Vary"] = "Accept-Encoding"
    response.set_etag(content.tag, weak=True)
    response.make_conditional(current_request())
    return response


class Pages:
    """The pages of one root, whose samples call these URLs; each is made when somebody reads it.

    The navigation lists them in the order in which the home page links to them, the groups last.
    """

    def __init__(self, auth: str, numbers: str, base: str, public: str, document: bytes) -> None:
        self._urls, self._public = {"AUTH": auth, "NUMBERS": numbers, "BASE": base}, public
        self._reference = Reference(document, public)
        home = (GUIDES / f"{HOME}.md").read_text("utf-8")
        names = [HOME, *dict.fromkeys(LISTED.findall(home))]
        self._guides = {name: (GUIDES / f"{name}.md").read_text("utf-8") for name in names}
        guides = self._guides.items()
        self.titles = {name: text.partition("\n")[0].removeprefix("# ") for name, text in guides}
        self.titles |= {name: group["name"] for name, group in self._reference.groups.items()}
        self._made: dict[str, Cached] = {}

    def page(self, name: str) -> Cached:
        """Return a page. Raises NotFound."""
        if name not in self.titles:
            raise NotFound
        if name not in self._made:
            text = self._text(name)
            says = NO_WORDS.sub("", " ".join(text.split("\n\n")[1].split()))
            facts = {"titles": self.titles, "groups": self._reference.groups, "path": _path}
            facts |= {"name": name, "home": HOME, "says": says, "content": _html(text, name)}
            self._made[name] = Cached(TEMPLATES.get_template("docs.html").render(facts).encode())
        return self._made[name]

    def _text(self, name: str) -> str:
        text = self._guides.get(name, "")
        text = SAMPLE_URL.sub(lambda it: f"{it[1]}_URL{it[2]}{self._urls[it[1]]}", text)
        text = text.replace("https://api.example/openapi.json", f"{self._public}/openapi.json")
        return text if text and name != REFERENCE else text + self._reference.text(name)

    @cached_property
    def index(self) -> Cached:
        """The list of all pages for language models, as llmstxt.org has it."""
        _, says, listed = self._guides[HOME].split("\n\n", 2)
        groups = self._reference.groups.items()
        lines = [f"- [{it['name']}]({name}.md): {it['description']}" for name, it in groups]
        head = f"# {FACTS['title']}\n\n> {' '.join(says.split())}\n\n"
        text = head + HEADING.sub(r"## \1", listed) + "\n".join(["\n## Operations\n", *lines, ""])
        return Cached(LISTED.sub(rf"]({self._public}/docs/\1)", text).encode())


pages = lru_cache(maxsize=ROOTS_MAX)(Pages)


def _path(name: str, here: str) -> str:
    """Return the relative URL of a page, seen from `here`; HOME lies a level above the others."""
    if name == HOME:
        return "docs" if here == HOME else "../docs"
    return f"docs/{name}" if here == HOME else name


def _html(text: str, here: str) -> str:
    """Render Markdown as HTML; headings and error codes get ids, links to guides lead to pages."""
    markdown = MarkdownIt("commonmark", {"highlight": _coloured}).enable("table")
    tokens = markdown.parse(text)
    row = tokens[0]
    for token, content in pairwise(tokens):
        if token.type == "tr_open":
            row = token
        elif token.type == "td_open" and (code := ERROR_CODE.fullmatch(content.content)):
            row.attrSet("id", code[1])
        elif token.type == "heading_open":
            token.attrSet("id", slug(content.content))
        for child in content.children or ():
            target = str(child.attrs.get("href", ""))
            if page := PAGE.match(target):
                child.attrSet("href", _path(page[1], here) + target[page.end() :])
    html: str = markdown.renderer.render(tokens, markdown.options, {})
    return html


def _coloured(code: str, language: str, _: str) -> str:
    """Return a block of code in colours, with the name of its language for the tabs."""
    inner: str = highlight(code, get_lexer_by_name(language or "text"), COLOURS)
    return f'<pre data-language="{escape(language)}"><code>{inner}</code></pre>'
