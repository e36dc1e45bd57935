"""Fixtures: the api on in-memory fakes, and clients of it (official SDK and plain HTTP) that need no socket."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx2
import pytest
from anthropic import AsyncAnthropic
from fastapi import FastAPI

from footplate.api.app import create_app
from footplate.api.services import ApiServices
from footplate.domain.environments import Backend
from footplate.domain.limits import RequestLimits
from footplate.domain.named_directories import AllowedRoots
from footplate.domain.networks import Network
from footplate.domain.request_guard import RequestGuard
from footplate.harness import registry

from .diff_twins import TwinDiffs
from .leaving_twins import TwinLeaving
from .twins import TwinHealth, TwinKeys, TwinNotifier, TwinReads, TwinTails, TwinUnits, TwinUsage, World

LIMITS = RequestLimits(json_bytes=1_000_000, message_bytes=1_000_000)
BASE = "http://footplate.test"


@dataclass
class Api:
    world: World = field(default_factory=World)
    tails: TwinTails = field(default_factory=TwinTails)
    health: TwinHealth = field(default_factory=TwinHealth)
    keys: TwinKeys = field(default_factory=TwinKeys)
    usage: TwinUsage = field(default_factory=TwinUsage)
    diffs: TwinDiffs = field(default_factory=TwinDiffs)
    leaving: TwinLeaving = field(default_factory=TwinLeaving)
    backend: Backend = field(
        default_factory=lambda: Backend(name="sandbox", network=Network("open"), can_limit_network=True)
    )

    def __post_init__(self) -> None:
        self.notifier = TwinNotifier(self.world)
        self.app = self.build()

    def build(self, *, ignore_unknown_fields: bool = False, limits: RequestLimits = LIMITS) -> FastAPI:
        return create_app(
            ApiServices(
                reads=TwinReads(self.world),
                units=TwinUnits(self.world),
                notifier=self.notifier,
                tails=self.tails,
                keys=self.keys,
                health=self.health,
                usage=self.usage,
                diffs=self.diffs,
                delivery=self.leaving,
                files=self.world.files,
                max_file_bytes=200_000,
                backend=self.backend,
                harnesses=frozenset({"native", "claude"}),
                transcripts=registry.load_transcripts,
                prewarmed_harnesses=frozenset({"claude"}),
                projects_root="/srv/projects/{organisation}",
                named_roots=AllowedRoots({"org_a": ["/srv/checkouts"]}),
                request_guard=RequestGuard.parse("footplate.test"),
                ignore_unknown_fields=ignore_unknown_fields,
                limits=limits,
            )
        )


def client_of(app: FastAPI, secret: str | None = "secret-a") -> httpx2.AsyncClient:
    headers = {"authorization": f"Bearer {secret}"} if secret else {}
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE, headers=headers)


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
async def http(api: Api) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(api.app) as client:
        yield client


@pytest.fixture
async def sdk(api: Api) -> AsyncIterator[AsyncAnthropic]:
    transport = httpx2.AsyncClient(transport=httpx2.ASGITransport(api.app))
    async with AsyncAnthropic(api_key="secret-a", base_url=BASE, http_client=transport) as client:
        yield client
