"""The reference: a page of Markdown for each group of operations, made of the OpenAPI document.

It says in words what each field is. The fields of a type stand where it comes first on a page.
"""

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urljoin

import msgspec
from jinja2 import ChainableUndefined, Environment

from app.http.edge import problems
from app.http.edge.media import JINJA, PAGES
from app.http.edge.operation import OF_EVERY_CALLER, OF_ORGANIZATION
from app.http.edge.replies import ReplyMeta
from app.http.edge.schemas import OR_EMPTY
from projections.engine.shape import MORE_MAY_COME

Part = dict[str, Any]  # Of the document.

OBJECTS_MAX = 2  # What can be one of more objects has a guide, which tells them.
TYPE = "x-type"
SHOWN_CHARS_MAX = 80  # Of an example, or a pattern.
BOUNDS: Final = {
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {}",
    "maxItems": "at most {}",
    "pattern": "as `{}`",
    "default": "else `{}`",
}
# What any operation may answer; a page explains the other codes of each.
COMMON: Final = {
    *(each.code for each in (*problems.OF_EVERY_REQUEST, problems.WRONG_MEDIA_TYPE)),
    *f"{OF_EVERY_CALLER} {OF_ORGANIZATION}".split(),
}
# What all replies have: a guide tells it.
ENVELOPE: Final = {"success", "meta", *(f"meta.{each}" for each in ReplyMeta.__struct_fields__)}


def slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", heading.lower()).strip("-")


def _plain(value: Any) -> str:
    """Return a text as it is, and anything else as JSON."""
    spaced = msgspec.json.format(msgspec.json.encode(value), indent=0)
    return value if isinstance(value, str) else spaced.decode()


# Parts of the document may be absent, and what it says is Markdown already.
_READ: dict[str, Any] = {**JINJA, "loader": PAGES, "undefined": ChainableUndefined}
MARKDOWN = Environment(autoescape=False, **_READ)  # noqa: S701  # It makes no HTML.
MARKDOWN.filters |= {"json": _plain, "python": repr, "slug": slug}
MARKDOWN.filters["env"] = lambda text, form: re.sub(r"\$(\w+)", form, text)


class Reference:
    """The pages of a document; `url` stands before what it names relatively."""

    def __init__(self, document: bytes, url: str) -> None:
        self._document, self._url = msgspec.json.decode(document), url
        tags = self._document["tags"]
        self.groups = {f"reference-{it['name'].lower().replace(' ', '-')}": it for it in tags}

    def text(self, name: str) -> str:
        """Return the page of a group; of another name the list of all operations."""
        groups = {each: [*self._operations(it["name"])] for each, it in self.groups.items()}
        facts: dict[str, Any] = {
            "groups": groups,
            "tags": self.groups,
            "name": name,
            "common": COMMON,
        }
        facts |= {"page": Page(self._document["components"])}
        return MARKDOWN.get_template("reference.jinja").render(facts)

    def _operations(self, tag: str) -> Iterator[Part]:
        for path, item in self._document["paths"].items():
            [server] = item.get("servers") or self._document["servers"]
            url, named = urljoin(f"{self._url}/", server["url"]).rstrip("/") + path, []
            for each in item.get("parameters", ()):
                named.append(each)
                url = url.replace(f"{{{each['name']}}}", each["schema"]["examples"][0])
            for method, said in item.items():
                if isinstance(said, dict) and tag in said["tags"]:
                    parameters = [*named, *(it for it in said["parameters"] if "$ref" not in it)]
                    own = {"method": method.upper(), "url": url, "parameters": parameters}
                    yield {**said, **own, "line": f"{method.upper()} {path}"}


class Page:
    """What a page says of types."""

    def __init__(self, components: Part) -> None:
        self._components = components
        self._seen: dict[str, str] = {}  # Where the fields of a type stand, by its name.

    def resolved(self, part: Part) -> Part:
        """Return all that a part of the document says or refers to, with the name of its type."""
        while "$ref" in part:
            *_, kind, name = part["$ref"].split("/")
            own = {key: value for key, value in part.items() if key != "$ref"}
            part = {**self._components[kind][name], TYPE: name, **own}
        return part

    def sent(self, parameters: list[Part], body: Part, line: str) -> Iterator[tuple[str, str]]:
        """Yield parameters, and the fields of a body."""
        for each in parameters:
            says = f" ({each['in']}), needed" if each["required"] else f" ({each['in']})"
            about = {**each["schema"], "description": each["description"]}
            yield each["name"], self.words(about, says)
        yield from self.fields(body, line, is_sent=True)

    def fields(
        self, schema: Part, line: str, at: str = "", *, is_sent: bool = False
    ) -> Iterator[tuple[str, str]]:
        """Yield path and words of each field of what a value can be, in an operation."""
        found = [*self._objects(schema, at)]
        for start, part in found if len(found) <= OBJECTS_MAX else ():
            if part[TYPE] in self._seen:
                continue
            self._seen[part[TYPE]] = f"[`{start}` of `{line}`](#{slug(line)})"
            for name, its in part["properties"].items():
                path, must_be = f"{start}.{name}".lstrip("."), name in part.get("required", ())
                if path not in ENVELOPE:
                    says = ("", ", needed") if is_sent else (", perhaps absent", "")
                    yield path, self.words(its, says[must_be])
                    yield from self.fields(its, line, path, is_sent=is_sent)

    def words(self, schema: Part, says: str = "") -> str:
        """Return what a value is, what else `says` of that, what it means, and an example."""
        part = self.resolved(schema)
        shown = _plain(part["examples"][0]) if "examples" in part else ""
        known = dict.fromkeys(self._seen.get(it[TYPE], "") for _, it in self._objects(schema))
        said = [
            f"{self._kind(schema)}{says}.",
            part.get("description", ""),
            f"For example `{shown}`." if 0 < len(shown) <= SHOWN_CHARS_MAX else "",
            *(f"Its fields are those of {each}." for each in known if each),
        ]
        return " ".join(" ".join(said).split()).replace("|", "\\|")

    def _objects(self, schema: Part, at: str = "") -> Iterator[tuple[str, Part]]:
        """Yield each object that a value can be or hold, and its path."""
        part = self.resolved(schema)
        if "properties" in part:
            yield at, part
        for each in part.get("anyOf", ()):
            yield from self._objects(each, at)
        if "items" in part:
            yield from self._objects(part["items"], f"{at}[]")

    def _kind(self, schema: Part) -> str:
        """Return what values a schema takes."""
        part = self.resolved(schema)
        if "enum" in part:
            return ", ".join(f"`{_plain(each)}`" for each in part["enum"])
        if "anyOf" in part:
            kinds = [self._kind(each) for each in part["anyOf"] if each != OR_EMPTY]
            if MORE_MAY_COME in part["anyOf"] and "`" in kinds[0]:
                kinds[1:] = ["one that comes later"]
            return " or ".join(dict.fromkeys(kinds))
        types = part.get("type", "any value")
        first, *others = [types] if isinstance(types, str) else types
        kind = part.get("format", first)
        kind += f" of {self._kind(part['items'])}" if "items" in part else ""
        said = {it: _plain(part[it]) for it in BOUNDS if it in part}
        bounds = [BOUNDS[it].format(v) for it, v in said.items() if len(v) <= SHOWN_CHARS_MAX]
        return " or ".join([", ".join([kind, *bounds]), *others])
