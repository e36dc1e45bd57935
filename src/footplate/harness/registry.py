"""Finds harnesses by name among the installed entry points (S1). Knows none of them by itself.

A harness is imported when it is first asked for, so that a worker does not pay at start for what no agent uses.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import structlog

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.domain.ports import Harness, HarnessServices
from footplate.domain.transcripts import Transcripts
from footplate.harness import loading

GROUP: Final = "footplate.harnesses"
PROGRAMS: Final = "footplate.programs"
TRANSCRIPTS: Final = "footplate.transcripts"

log = structlog.get_logger(__name__)


def installed() -> tuple[str, ...]:
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def programs() -> tuple[str, ...]:
    """Directories that environments show, read-only, because a harness runs a program of its own inside."""
    return tuple(path for point in entry_points(group=PROGRAMS) for path in point.load()())


@cache
def transcripts(name: str) -> Transcripts | None:
    """What reads and writes the transcripts of a harness's program, if it has one. Loaded when first asked for."""
    for point in entry_points(group=TRANSCRIPTS, name=name):
        found: Transcripts = point.load()()
        return found
    return None


def with_programs() -> frozenset[str]:
    """Harnesses whose own program runs inside: it is worth starting before somebody waits for it."""
    return frozenset(point.name for point in entry_points(group=PROGRAMS))


def check(name: str) -> None:
    """Refuse a name that no installed package provides."""
    if name not in installed():
        raise InvalidRequest(f"There is no harness {name!r}.", field="harness", help_text=_choices())


class Harnesses:
    """The harnesses of one process, each created once and shared by all its turns."""

    def __init__(self, services: HarnessServices) -> None:
        self._services = services
        self._created: dict[str, Harness] = {}

    def get(self, name: str) -> Harness:
        if name not in self._created:
            self._created[name] = self._create(name)
        return self._created[name]

    def _create(self, name: str) -> Harness:
        point = _find(name)
        with loading.ALONE:
            try:
                factory = point.load()
            except Exception as error:
                raise Permanent(
                    f"The harness {name!r} ({point.value}) cannot be loaded: {error}",
                    help_text="Install what it needs on every worker.",
                ) from error
            harness: Harness = factory(self._services)
        log.info("harness loaded", action="harness.loaded", harness=name, factory=point.value)
        return harness


def _find(name: str) -> EntryPoint:
    for point in entry_points(group=GROUP, name=name):
        return point
    raise Permanent(f"There is no harness {name!r} on this worker.", help_text=_choices())


def _choices() -> str:
    names = ", ".join(installed()) or "none"
    return f"Installed: {names}. A package adds one by an entry point in the group {GROUP!r}."
