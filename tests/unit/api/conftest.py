"""Fixtures: the api on in-memory fakes, and clients of it (official SDK and plain HTTP) that need no socket."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import httpx2
import pytest
from anthropic import AsyncAnthropic
from fastapi import FastAPI

from footplate.api.app import create_app
from footplate.api.service_container import ApiServices
from footplate.domain.agents.environment_config import Backend
from footplate.domain.network.command_network_access import Network
from footplate.domain.network.host_and_origin_check import RequestGuard
from footplate.domain.network.request_limits import RequestLimits
from footplate.domain.projects.allowed_directories import AllowedRoots
from footplate.harness import registry

from .fake_delivery import FakeDelivery
from .fake_diffs import FakeDiffs
from .fake_limits import FakeLimitGuard
from .fake_services import (
    FakeEventStreams,
    FakeFeeds,
    FakeHealth,
    FakeKeys,
    FakeNotifier,
    FakeQueues,
    FakeReads,
    FakeRecordings,
    FakeTerminals,
    FakeUnits,
    FakeUsage,
    World,
)
from .fake_sign_in import FakeBrowserSessions, FakeDeviceAuthorizations

LIMITS = RequestLimits(json_bytes=1_000_000, message_bytes=1_000_000)
BASE = "http://footplate.test"


@dataclass
class Api:
    world: World = field(default_factory=World)
    tails: FakeEventStreams = field(default_factory=FakeEventStreams)
    feeds: FakeFeeds = field(default_factory=FakeFeeds)
    terminals: FakeTerminals = field(default_factory=FakeTerminals)
    recordings: FakeRecordings = field(default_factory=FakeRecordings)
    health: FakeHealth = field(default_factory=FakeHealth)
    keys: FakeKeys = field(default_factory=FakeKeys)
    usage: FakeUsage = field(default_factory=FakeUsage)
    diffs: FakeDiffs = field(default_factory=FakeDiffs)
    delivery: FakeDelivery = field(default_factory=FakeDelivery)
    backend: Backend = field(
        default_factory=lambda: Backend(name="sandbox", network=Network("open"), can_limit_network=True)
    )
    other_backends: Sequence[Backend] = ()

    def __post_init__(self) -> None:
        self.notifier = FakeNotifier(self.world)
        self.app = self.build()

    def build(self, *, ignore_unknown_fields: bool = False, limits: RequestLimits = LIMITS, **replaced: Any) -> FastAPI:
        """`replaced`: fields of `ApiServices` that are not fakes."""
        services = ApiServices(
            reads=FakeReads(self.world),
            units=FakeUnits(self.world),
            notifier=self.notifier,
            tails=self.tails,
            feeds=self.feeds,
            terminals=self.terminals,
            webhooks=self.world.webhooks,
            push_keys=self.world.notifications,
            keys=self.keys,
            browser_sessions=FakeBrowserSessions(self.keys.known),
            device_authorizations=FakeDeviceAuthorizations(),
            limit_guard=FakeLimitGuard(self.world.limits),
            health=self.health,
            queues=FakeQueues(),
            usage=self.usage,
            diffs=self.diffs,
            delivery=self.delivery,
            files=self.world.files,
            recordings=self.recordings,
            max_file_bytes=200_000,
            backends=[self.backend, *self.other_backends],
            harnesses=frozenset({"native", "claude", "shell"}),
            transcripts=registry.load_transcripts,
            prewarmed_harnesses=frozenset({"claude"}),
            projects_root="/srv/projects/{organisation}",
            named_roots=AllowedRoots({"org_a": ["/srv/checkouts"]}),
            request_guard=RequestGuard.parse("footplate.test"),
            ignore_unknown_fields=ignore_unknown_fields,
            limits=limits,
        )
        return create_app(replace(services, **replaced))


def make_client(app: FastAPI, secret: str | None = "secret-a") -> httpx2.AsyncClient:
    headers = {"authorization": f"Bearer {secret}"} if secret else {}
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE, headers=headers)


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
async def http(api: Api) -> AsyncIterator[httpx2.AsyncClient]:
    async with make_client(api.app) as client:
        yield client


@pytest.fixture
async def sdk(api: Api) -> AsyncIterator[AsyncAnthropic]:
    transport = httpx2.AsyncClient(transport=httpx2.ASGITransport(api.app))
    async with AsyncAnthropic(api_key="secret-a", base_url=BASE, http_client=transport) as client:
        yield client
