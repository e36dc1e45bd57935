"""Defines `ApiServices`: the services and settings that the API needs. `footplate.wiring` creates them at startup."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import HTTPConnection

from footplate.api.stream_and_body_quotas import KeyQuotas, StreamSlot
from footplate.api.watched_sessions import WatchedSessions
from footplate.domain.agents.environment_config import Backend
from footplate.domain.agents.model_connections import ConnectionCatalog
from footplate.domain.files.delivery import DeliveryService
from footplate.domain.files.uploaded_files import FileBytes
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.host_and_origin_check import RequestGuard
from footplate.domain.network.request_limits import RequestLimits
from footplate.domain.organisations.device_authorization import DeviceAuthorizations
from footplate.domain.organisations.limits import LimitGuard
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.sign_in import BrowserSessions
from footplate.domain.organisations.single_sign_on import SingleSignOn
from footplate.domain.organisations.webhooks import WebhookAccess
from footplate.domain.policy.hooks import HookAccess
from footplate.domain.ports.api import (
    Diffs,
    EventStreams,
    FeedStreams,
    Health,
    Keys,
    Notifier,
    Reads,
    UnitOfWorkFactory,
)
from footplate.domain.ports.deployment_health import QueueReads
from footplate.domain.ports.notifications import PushKeys
from footplate.domain.ports.terminals import TerminalRecordings, TerminalViews
from footplate.domain.ports.transcript_exchange import Transcripts
from footplate.domain.ports.usage_report import UsageReads
from footplate.domain.ports.webhooks import WebhookNotifier
from footplate.domain.projects.allowed_directories import AllowedRoots

MAX_FILE_BYTES: Final = 64_000_000


def _no_transcripts(_harness: str) -> Transcripts | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    reads: Reads
    units: UnitOfWorkFactory
    notifier: Notifier
    tails: EventStreams
    feeds: FeedStreams
    terminals: TerminalViews
    webhooks: WebhookNotifier
    """Wakes webhook endpoints after a change to one of them."""
    push_keys: PushKeys
    """The key pair with which this server identifies itself to push services."""
    keys: Keys
    browser_sessions: BrowserSessions
    device_authorizations: DeviceAuthorizations
    limit_guard: LimitGuard
    """Checks the limits of organisations and members."""
    health: Health
    queues: QueueReads
    usage: UsageReads
    diffs: Diffs
    delivery: DeliveryService
    files: FileBytes
    recordings: TerminalRecordings
    backends: Sequence[Backend]
    """Where workers run commands, the default first: a request may ask for no other backend, and of each only for
    features that it has.
    """
    harnesses: frozenset[str]
    """Names of the harnesses that an agent can choose."""
    default_harness: str = "native"
    """The harness of an agent that chooses none."""
    prewarmed_harnesses: frozenset[str] = frozenset()
    """Harnesses that workers prewarm as soon as a session is created."""
    webhook_access: WebhookAccess = field(default_factory=lambda: WebhookAccess(AddressPolicy()))
    """URLs that may receive webhooks."""
    hook_access: HookAccess = field(default_factory=HookAccess)
    """Hosts that HTTP hooks may call."""
    has_search: bool = False
    """Whether a provider for `web_search` is configured."""
    toolsets: frozenset[str] = frozenset()
    """Names of the server-side toolsets whose packages are installed."""
    connections: ConnectionCatalog = field(default_factory=ConnectionCatalog)
    """The connections to model providers."""
    known_models: Callable[[str], Sequence[str]] = lambda _: ()
    """Returns the models of a provider that the library knows. The first call takes a moment, so use a thread."""
    projects_root: str = "/nonexistent"
    """Directory that must contain projects with a path, as the operator wrote it."""
    named_roots: AllowedRoots = field(default_factory=lambda: AllowedRoots({}))
    """Directories that sessions may name."""
    request_guard: RequestGuard = field(default_factory=RequestGuard)
    """Host names that the API serves, and origins of web pages that may call it."""
    single_sign_on: SingleSignOn | None = None
    """Signing in through an identity provider, if one is configured."""
    public_url: str | None = None
    """The address of the server for browsers, such as `https://footplate.example.com`. None: the one of the request."""
    ignore_unknown_fields: bool = False
    """For clients newer than the server: unknown fields are dropped instead of refused."""
    limits: RequestLimits = field(default_factory=RequestLimits)
    max_file_bytes: int = MAX_FILE_BYTES
    quotas: KeyQuotas = field(init=False)
    watched_sessions: WatchedSessions = field(default_factory=WatchedSessions)
    """The sessions with open streams."""
    large_body_semaphore: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    """Held while a large body is parsed."""
    transcripts: Callable[[str], Transcripts | None] = _no_transcripts
    """Returns the transcript format of a harness by name, or None: most harnesses have no program that writes
    transcripts.
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "quotas", KeyQuotas(self.limits))


async def acquire_stream(services: ApiServices, principal: Principal) -> StreamSlot:
    """Registers an open stream. Raises `LimitExceeded` or `OrganisationLimitExceeded` if there are too many."""
    slot = services.quotas.acquire_stream(principal.id)
    try:
        slot.on_release = (await services.limit_guard.open_stream(principal)).release
    except BaseException:
        slot.release()
        raise
    return slot


def get_services(request: HTTPConnection) -> ApiServices:
    services: ApiServices = request.app.state.services
    return services
