"""`just compatibility` writes docs/compatibility.md from what the probes claim; `--check` says if it is up to date.

Every method, parameter, request object, answer field and event of the installed SDK must be claimed by a probe: what is
not fails here, and so does a claim about something that the SDK does not have.
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

How Footplate compares with the reference, the managed agents API as Anthropic's official SDKs speak it: `anthropic`
{version} on PyPI. Every line is shown by a probe in `tests/compat` that drives the unmodified SDK, synchronous and
asynchronous, against a running server; `just prove door-1` runs them all. This page is made from those probes by
`just compatibility`, and from the SDK's own signatures, so that nothing of it is missing here.

- **supported**: it does what the reference says.
- **refused**: 400, and `error.field` names it. No field is accepted and then ignored.
- **different**: it does what the note says.
"""

Row = tuple[str, Claim]


class Incomplete(Exception):
    """The reference and the claims do not fit together."""


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
        "## Answers\n\nBeside these fields answers have others of ours; clients must expect them.\n",
        *(
            _section(title, reader.rows(title, model.model_fields), level=3)
            for title, model in reference.ANSWERS.items()
        ),
        _section("Events", reader.rows(reference.EVENTS, reference.event_types())),
    ]
    reader.complain()
    return "\n".join(parts)


class _Reader:
    """Looks claims up, and keeps account of those that nobody made or nobody needs."""

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

    def complain(self) -> None:
        foreign = [" ".join(key).strip() for key in CLAIMS if key not in self._used]
        if self._missing or foreign:
            raise Incomplete(f"no probe tells of: {self._missing}; the SDK does not have: {foreign}")


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
        return _section(title, [("*the whole*", whole)] if whole else [], level=3)
    rows = reader.rows(title, fields)
    _collect(objects, fields, rows)
    return _section(title, rows, level=3)


def _collect(objects: dict[str, Any], fields: Mapping[str, Any], rows: list[Row]) -> None:
    """What stands inside a field that is refused needs no word of its own."""
    for name, claim in rows:
        if claim.verdict is not Verdict.REFUSED:
            for found in reference.objects_in(fields[name]):
                objects.setdefault(reference.title_of(found), found)


def _walk(objects: dict[str, Any]) -> Iterator[str]:
    """Those that are found on the way are walked too."""
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
        sys.exit("docs/compatibility.md is not what the probes say. Run `just compatibility` and look at the change.")
    sys.stdout.write(f"docs/compatibility.md tells of {len(CLAIMS)} things.\n")


if __name__ == "__main__":
    main()
