"""What the api is given: the ports, and the few settings that change what a request may say."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import HTTPConnection

from footplate.api.key_quotas import KeyQuotas
from footplate.domain.environments import Backend
from footplate.domain.files import FileBytes
from footplate.domain.hooks import HookAccess
from footplate.domain.leaving import Leaving
from footplate.domain.limits import RequestLimits
from footplate.domain.named_directories import NamedRoots
from footplate.domain.request_guard import RequestGuard
from footplate.domain.services import Diffs, Health, Keys, Notifier, Reads, Tails, Units
from footplate.domain.transcripts import Transcripts
from footplate.domain.usage import UsageReads

MAX_FILE: Final = 64_000_000


def _no_transcripts(_harness: str) -> Transcripts | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    reads: Reads
    units: Units
    notifier: Notifier
    tails: Tails
    keys: Keys
    health: Health
    usage: UsageReads
    diffs: Diffs
    leaving: Leaving
    files: FileBytes
    backend: Backend
    """What the workers run commands in, as far as an environment may ask something of it."""
    harnesses: frozenset[str]
    """Names that an agent may choose from."""
    default_harness: str = "native"
    """Of an agent that chooses none."""
    prepared: frozenset[str] = frozenset()
    """Harnesses that workers get ready as soon as a session of theirs is created."""
    hooks: HookAccess = field(default_factory=HookAccess)
    """Where hooks may be asked by HTTP."""
    search: bool = False
    """There is a provider that answers `web_search`."""
    projects_root: str = "/nonexistent"
    """Where projects may lie that are named by a path, as the operator wrote it."""
    named_roots: NamedRoots = field(default_factory=lambda: NamedRoots({}))
    """Which directories sessions may name."""
    guard: RequestGuard = field(default_factory=RequestGuard)
    """Under which names it answers, and whose web pages may call it."""
    ignore_unknown_fields: bool = False
    """For clients newer than the server: what nobody knows is dropped instead of refused."""
    limits: RequestLimits = field(default_factory=RequestLimits)
    max_file: int = MAX_FILE
    quotas: KeyQuotas = field(init=False)
    large_bodies: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """Held while a large body is parsed."""
    transcripts: Callable[[str], Transcripts | None] = _no_transcripts
    """By the name of a harness; most have no program of their own that writes any."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "quotas", KeyQuotas(self.limits))


def services_of(request: HTTPConnection) -> ApiServices:
    services: ApiServices = request.app.state.services
    return services
