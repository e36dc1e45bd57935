"""Finds installed harnesses (agent loops) by name, through their Python entry points.

A harness is imported when it is first used, so that a worker does not load harnesses that no agent uses.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import structlog

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.domain.ports.harness import Harness, HarnessServices
from footplate.domain.ports.transcript_exchange import Transcripts
from footplate.harness import lazy_import

GROUP: Final = "footplate.harnesses"
PROGRAMS: Final = "footplate.programs"
TRANSCRIPTS: Final = "footplate.transcripts"
_EXTRAS: Final = {"claude": "claude"}
"""The harnesses with an extra of their own. The others are in `server`."""

log = structlog.get_logger(__name__)


def installed_harnesses() -> tuple[str, ...]:
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def program_directories() -> tuple[str, ...]:
    """Directories with the harnesses' own programs. Every environment mounts them read-only."""
    return tuple(path for point in entry_points(group=PROGRAMS) for path in point.load()())


@cache
def load_transcripts(name: str) -> Transcripts | None:
    """The harness's importer and exporter of transcripts, if it has one. It is loaded at its first use."""
    for point in entry_points(group=TRANSCRIPTS, name=name):
        loaded: Transcripts = point.load()()
        return loaded
    return None


def harnesses_with_programs() -> frozenset[str]:
    """Harnesses that run a program of their own in the environment. Starting it early saves the user time."""
    return frozenset(point.name for point in entry_points(group=PROGRAMS))


def ensure_installed(name: str) -> None:
    """Raises `InvalidRequest` if no installed package provides the harness."""
    if name not in installed_harnesses():
        raise InvalidRequest(f"The harness {name!r} does not exist.", field="harness", help_text=_installed_help())


class HarnessRegistry:
    """The harnesses of one process, each created once and shared by all its turns."""

    def __init__(self, services: HarnessServices) -> None:
        self._services = services
        self._created: dict[str, Harness] = {}

    def get(self, name: str) -> Harness:
        if name not in self._created:
            self._created[name] = self._create(name)
        return self._created[name]

    def _create(self, name: str) -> Harness:
        point = _find_entry_point(name)
        with lazy_import.IMPORT_LOCK:
            try:
                factory = point.load()
            except Exception as error:
                wanted = missing_extra(point, error) or "its package and dependencies"
                raise Permanent(
                    f"The harness {name!r} ({point.value}) cannot be loaded: {error}",
                    help_text=f"Install {wanted} on every worker.",
                ) from error
            harness: Harness = factory(self._services)
        log.info("harness loaded", action="harness.loaded", harness=name, factory=point.value)
        return harness


def missing_extra(point: EntryPoint, error: Exception) -> str:
    """The extra of this package whose absence is the reason of the error, such as `footplate[claude]`, or nothing."""
    if not point.value.startswith("footplate.") or not isinstance(error, ModuleNotFoundError):
        return ""
    return f"footplate[{_EXTRAS.get(point.name, 'server')}]"


def _find_entry_point(name: str) -> EntryPoint:
    for point in entry_points(group=GROUP, name=name):
        return point
    raise Permanent(f"The harness {name!r} is not installed on this worker.", help_text=_installed_help())


def _installed_help() -> str:
    names = ", ".join(installed_harnesses()) or "none"
    return f"Installed harnesses: {names}. A package adds one with an entry point in the group {GROUP!r}."
