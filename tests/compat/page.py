"""Writes docs/compatibility.md from the claims of the probes (`just compatibility`). `--check` fails if it is outdated.

A probe must claim every method, parameter, request object, response field and event of the installed SDK. A missing
claim is an error, and so is a claim about something that the SDK does not have.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from tests.compat import probes, reference
from tests.compat.registry import CLAIMS, METHOD, Claim, Verdict

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "compatibility.md"
_HEAD: Final = """\
# Compatibility

This page compares Footplate with its reference: the managed agents API of Anthropic's official SDKs (`anthropic`
{version} on PyPI). A probe in `tests/compat` shows each line by running the unmodified SDK, synchronous and
asynchronous, against a server. `just prove door-1` runs all probes. `just compatibility` writes this page from the
probes and from the SDK's own signatures, so it is complete.

- **supported**: works as the reference documents.
- **refused**: the server responds with 400, and `error.field` names the field. No field is accepted and then ignored.
- **different**: works as the note describes.
"""

Row = tuple[str, Claim]


class Incomplete(Exception):
    """The claims do not match the reference."""


def render() -> str:
    probes.load()
    reader = _Reader()
    objects: dict[str, Any] = {}
    parts = [
        _HEAD.format(version=version("anthropic")),
        _section("Every method", reader.rows(reference.EVERY, reference.COMMON)),
        "## Methods\n",
        *(_method(method, reader, objects) for method in reference.methods()),
        "## Objects inside requests\n",
        *(_object(title, reader, objects) for title in _walk(objects)),
        "## Responses\n\nResponses also have fields that only Footplate has. Clients must tolerate unknown fields.\n",
        *(
            _section(title, reader.rows(title, model.model_fields), level=3)
            for title, model in reference.RESPONSES.items()
        ),
        _section("Events", reader.rows(reference.EVENTS, reference.event_types())),
    ]
    reader.raise_if_incomplete()
    return "\n".join(parts)


class _Reader:
    """Looks up claims, and tracks claims that are missing or unused."""

    def __init__(self) -> None:
        self._used: set[tuple[str, str]] = set()
        self._missing: list[str] = []

    def claim(self, where: str, name: str = METHOD) -> Claim | None:
        found = CLAIMS.get((where, name))
        if found is None:
            self._missing.append(f"{where} {name}".strip())
        self._used.add((where, name))
        return found

    def rows(self, where: str, names: Iterable[str]) -> list[Row]:
        return [(name, claim) for name in names if (claim := self.claim(where, name)) is not None]

    def raise_if_incomplete(self) -> None:
        foreign = [" ".join(key).strip() for key in CLAIMS if key not in self._used]
        if self._missing or foreign:
            raise Incomplete(f"no probe covers: {self._missing}; the SDK does not have: {foreign}")


def _method(method: reference.Method, reader: _Reader, objects: dict[str, Any]) -> str:
    whole = reader.claim(method.name)
    if whole is None:
        return ""
    rows = []
    if whole.verdict is not Verdict.REFUSED:
        rows = reader.rows(method.name, method.fields)
        _collect(objects, method.fields, rows)
    route = f"`{method.route}`: " if method.route else ""
    note = f". {whole.note}" if whole.note else "."
    return f"### `{method.name}`\n\n{route}{whole.verdict}{note}\n" + (f"\n{_table(rows)}" if rows else "")


def _object(title: str, reader: _Reader, objects: dict[str, Any]) -> str:
    fields = reference.fields_of(objects[title])
    if not fields or (title, METHOD) in CLAIMS:
        whole = reader.claim(title)
        return _section(title, [("*whole object*", whole)] if whole else [], level=3)
    rows = reader.rows(title, fields)
    _collect(objects, fields, rows)
    return _section(title, rows, level=3)


def _collect(objects: dict[str, Any], fields: Mapping[str, Any], rows: list[Row]) -> None:
    """Collects the objects inside fields. The contents of a refused field need no claims of their own."""
    for name, claim in rows:
        if claim.verdict is not Verdict.REFUSED:
            for found in reference.objects_in(fields[name]):
                objects.setdefault(reference.title_of(found), found)


def _walk(objects: dict[str, Any]) -> Iterator[str]:
    """Yields every title, including titles that are added during the walk."""
    done: set[str] = set()
    while rest := sorted(set(objects) - done):
        done.add(rest[0])
        yield rest[0]


def _section(title: str, rows: list[Row], *, level: int = 2) -> str:
    return f"{'#' * level} {title}\n\n{_table(rows)}"


def _table(rows: list[Row]) -> str:
    lines = ["| field | verdict | note |", "|---|---|---|"]
    for name, claim in rows:
        shown = name if name.startswith("*") else f"`{name}`"
        lines.append(f"| {shown} | {claim.verdict} | {claim.note} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    page = render()
    if "--check" not in sys.argv:
        PAGE.write_text(page)
    elif not PAGE.exists() or PAGE.read_text() != page:
        sys.exit("docs/compatibility.md is out of date. Run `just compatibility` and review the change.")
    sys.stdout.write(f"docs/compatibility.md: {len(CLAIMS)} claims.\n")


if __name__ == "__main__":
    main()
