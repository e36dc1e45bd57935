"""Webhooks arrive at least once and in order while their sender is killed, and none reaches a private address.

Endpoints fail, hang, redirect and respond slowly, while sessions change and workers are killed between sending and
recording. Each event must arrive at each endpoint that accepts it. The official SDKs of Python and TypeScript verify
the signatures, turns go on meanwhile, and tricks with addresses reach nothing.
"""

import asyncio
import json
import random
import secrets
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import asyncpg
import httpx2
from anthropic import Anthropic
from standardwebhooks import WebhookVerificationError

from bench.prove.figure import Figure
from bench.support.clients import Client, raw_client
from bench.support.cluster import Cluster, open_cluster
from bench.support.sdk import npm
from bench.support.webhooks.address_tricks import REBINDING_NAME, TrickNames, trick_urls
from bench.support.webhooks.receiver import HANG, ReceivedWebhook, WebhookReceiver
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.dns_lookup import NameLookup
from footplate.domain.organisations.webhooks import WebhookAccess
from footplate.engine.webhooks.http_sender import WebhookSender
from footplate.harness import address_check
from footplate.stack.orphan_processes import wait_until
from footplate.testing import replies, text

_SETTINGS: Final = {
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "3",
    "FOOTPLATE_LEASE": "1.5",
    "FOOTPLATE_SWEEP_INTERVAL": "2",
    "FOOTPLATE_WEBHOOK_HTTP": "true",
    "FOOTPLATE_WEBHOOK_ALLOW": "127.0.0.1",
    "FOOTPLATE_WEBHOOK_SECONDS": "10",
    "FOOTPLATE_WEBHOOK_RETRY_WAIT": "0.2",
}
_ACCEPTING: Final = ("/ordered", "/works", "/fails", "/slow", "/hangs")
"""Endpoints that accept each event in the end."""
_HUNG_EVENTS: Final = 5
"""Events whose first attempt gets no response at `/hangs`."""
_REFUSING: Final = ("/redirects", "/never")
"""Endpoints that accept nothing. They receive the events of one session, because each event is repeated many times."""
_ARRIVAL_SECONDS: Final = 400.0
_REPORT_SECONDS: Final = 15.0
_KILL_SECONDS: Final = 60.0
_MIN_TRICKS: Final = 60
_MAX_AGE_SECONDS: Final = 240
_TYPE: Final = "session.updated"


@dataclass(frozen=True, slots=True)
class Size:
    sessions: int
    changes: int
    """Changes of each session for each kill."""
    kills: int


_FULL: Final = Size(sessions=20, changes=5, kills=20)
_QUICK: Final = Size(sessions=3, changes=3, kills=2)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    size = _QUICK if quick else _FULL
    await npm.install_sdk()  # now, because webhooks become too old to be verified
    async with (
        WebhookReceiver() as receiver,
        open_cluster(apis=1, workers=2, environment=_SETTINGS) as cluster,
        Client(cluster, max_retries=40) as client,
        raw_client(cluster) as http,
    ):
        trial = _Trial(cluster, client, http, receiver, random.Random(seed), size)
        await trial.run()
        arrived = len({each.id for each in receiver.accepted})
    tricks = await _try_addresses(trial.faults)
    return _figure(trial, arrived, tricks)


@dataclass(slots=True)
class _Trial:
    cluster: Cluster
    client: Client
    http: httpx2.AsyncClient
    receiver: WebhookReceiver
    rng: random.Random
    size: Size
    faults: list[str] = field(default_factory=list)
    kills: int = 0
    slowest_turn: float = 0.0
    verified: dict[str, int] = field(default_factory=lambda: {"Python": 0, "TypeScript": 0})
    """How many signatures each SDK has accepted."""
    _sdks: dict[str, Anthropic] = field(default_factory=dict)
    _secrets: dict[str, str] = field(default_factory=dict)
    _endpoint_ids: dict[str, str] = field(default_factory=dict)
    _attempts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _hung_events: int = 0

    async def run(self) -> None:
        self.receiver.respond = self._respond
        await self.cluster.model.install("hello", replies([text("Hello.")]))
        agent_id = await self.client.agent()
        sessions = [await self.client.session(agent_id) for _ in range(self.size.sessions)]
        for path in _ACCEPTING:
            await self._create_endpoint(path, None)
        for path in _REFUSING:
            await self._create_endpoint(path, sessions[0])
        began = time.monotonic()
        for number in range(self.size.kills):
            async with asyncio.TaskGroup() as group:
                group.create_task(self._change_all(sessions, number))
                group.create_task(self._kill_worker(number))
        print(f"  {self.kills} kills, {time.monotonic() - began:.0f} s", flush=True)
        await self._run_turns(sessions[:3])
        await self._verify_in_typescript()
        await self._wait_for_arrival(sessions)
        print(f"  everything has arrived, {time.monotonic() - began:.0f} s", flush=True)
        self._check_order()
        self._check_refused_endpoints()

    async def _create_endpoint(self, path: str, session_id: str | None) -> None:
        body = {"url": self.receiver.url(path), "event_types": [_TYPE], "ordered": path == "/ordered"}
        if session_id is not None:
            body["session_id"] = session_id
        created = (await self.http.post("/v1/webhook_endpoints", json=body)).raise_for_status().json()
        self._secrets[path], self._endpoint_ids[path] = created["secret"], created["id"]
        self._sdks[path] = Anthropic(api_key="unused", webhook_key=created["secret"])

    def _respond(self, webhook: ReceivedWebhook) -> Any:
        self._verify(webhook)
        self._attempts[webhook.id] += 1
        attempt = self._attempts[webhook.id]
        match webhook.path:
            case "/fails":
                return 200 if attempt > 2 else self.rng.choice((500, 429, 404))
            case "/hangs":
                if attempt == 1:
                    self._hung_events += 1
                return HANG if attempt == 1 and self._hung_events <= _HUNG_EVENTS else 200
            case "/slow":
                return self._respond_slowly()
            case "/redirects":
                return 307, {"location": self.receiver.url("/redirected")}
            case "/never":
                return 500
            case _:
                return 200

    async def _respond_slowly(self) -> int:
        await asyncio.sleep(0.2)
        return 200

    async def _change_all(self, sessions: Sequence[str], part: int) -> None:
        async def change(session_id: str) -> None:
            for number in range(self.size.changes):
                await self.client.sdk.beta.sessions.update(session_id, title=f"change {part}.{number}")

        async with asyncio.TaskGroup() as group:
            for session_id in sessions:
                group.create_task(change(session_id))

    async def _kill_worker(self, number: int) -> None:
        """Kills a worker at any time, or between sending and recording, and starts it again."""
        await asyncio.sleep(self.rng.uniform(0.0, 1.0))
        if number % 2:
            await self.cluster.kill_worker(number // 2 % len(self.cluster.workers))
        else:
            (self.cluster.failpoints / "webhook_sent").write_text("kill")
            if not await wait_until(self._has_dead_worker, _KILL_SECONDS):
                self.faults.append("no worker was killed, because none has sent a webhook")
        for index, worker in enumerate(self.cluster.workers):
            if not worker.is_running:
                self.kills += 1
                await self.cluster.restart_worker(index)

    async def _has_dead_worker(self) -> bool:
        return not all(worker.is_running for worker in self.cluster.workers)

    async def _run_turns(self, sessions: Sequence[str]) -> None:
        for session_id in sessions:
            began = time.monotonic()
            await self.client.run_turn(session_id, "Hi [[script:hello]]")
            self.slowest_turn = max(self.slowest_turn, time.monotonic() - began)

    async def _wait_for_arrival(self, sessions: Sequence[str]) -> None:
        """Each change of each session must arrive at each accepting endpoint, and its delivery must be recorded."""
        wanted = await self._count_changes(sessions)
        began = reported = time.monotonic()
        connection = await asyncpg.connect(self.cluster.settings.database_url)
        try:
            while time.monotonic() < began + _ARRIVAL_SECONDS:
                rows = await connection.fetch(
                    "select endpoint_id, count(*) as number from webhook_deliveries"
                    " where status = 'delivered' group by 1"
                )
                delivered = {row["endpoint_id"]: row["number"] for row in rows}
                if all(delivered.get(self._endpoint_ids[path]) == wanted for path in _ACCEPTING):
                    break
                if time.monotonic() > reported + _REPORT_SECONDS:
                    reported = time.monotonic()
                    print(f"  {self._describe(delivered)} of {wanted} are delivered", flush=True)
                await asyncio.sleep(0.5)
            else:
                self.faults.append(f"{self._describe(delivered)} of {wanted} events were delivered in time")
            stored = await connection.fetch("select id, endpoint_id from webhook_deliveries where status = 'delivered'")
        finally:
            await connection.close()
        accepted = {each.id for each in self.receiver.accepted}
        if missing := [row["id"] for row in stored if row["id"] not in accepted]:
            self.faults.append(f"{len(missing)} deliveries are recorded, but did not arrive: {missing[:3]}")
        for path in _ACCEPTING:
            arrived = {each.id for each in self.receiver.accepted if each.path == path}
            if len(arrived) != wanted:
                self.faults.append(f"{path}: {len(arrived)} of {wanted} events arrived")

    def _describe(self, delivered: Mapping[str, int]) -> str:
        return ", ".join(f"{path} {delivered.get(self._endpoint_ids[path], 0)}" for path in _ACCEPTING)

    async def _count_changes(self, sessions: Sequence[str]) -> int:
        connection = await asyncpg.connect(self.cluster.settings.database_url)
        try:
            count: int = await connection.fetchval(
                "select count(*) from events where type = $1 and session_id = any($2::text[])", _TYPE, [*sessions]
            )
        finally:
            await connection.close()
        return count

    def _check_order(self) -> None:
        """The first arrivals of a session's events at the ordered endpoint must be in the order of the feed."""
        seen: set[str] = set()
        last: dict[str, int] = {}
        for webhook in (each for each in self.receiver.accepted if each.path == "/ordered"):
            if webhook.id in seen:
                continue
            seen.add(webhook.id)
            position = webhook.payload["data"]["position"]
            if position < last.get(webhook.session_id, 0):
                self.faults.append(
                    f"{webhook.session_id}: position {position} arrived after {last[webhook.session_id]}"
                )
            last[webhook.session_id] = position

    def _check_refused_endpoints(self) -> None:
        if any(each.path == "/redirected" for each in self.receiver.received):
            self.faults.append("a redirect was followed")
        for path in _REFUSING:
            if not any(each.path == path for each in self.receiver.received):
                self.faults.append(f"{path} received nothing")

    def _verify(self, webhook: ReceivedWebhook) -> None:
        """Verifies a webhook when it arrives: the library refuses one that is five minutes old."""
        if (sdk := self._sdks.get(webhook.path)) is None:
            return  # a redirect was followed, which is a fault of its own
        try:
            event = sdk.beta.webhooks.unwrap(webhook.body, headers=webhook.headers)
        except (WebhookVerificationError, ValueError) as error:
            self.faults.append(f"{webhook.path}: the SDK refused {webhook.id}: {error}")
            return
        if event.id != webhook.id:
            self.faults.append(f"the SDK read another id than {webhook.id}")
        self.verified["Python"] += 1

    async def _verify_in_typescript(self) -> None:
        """Verifies the webhooks of one endpoint, except those that the library refuses as too old."""
        oldest = time.time() - _MAX_AGE_SECONDS
        sample = [
            each
            for each in self.receiver.received
            if each.path == "/works" and float(each.headers["webhook-timestamp"]) > oldest
        ]
        forged = [replace(each, body=each.body.replace("session.updated", "session.deleted")) for each in sample[:20]]
        count = await _count_accepted_in_typescript(self._secrets["/works"], sample, forged)
        self.verified["TypeScript"] = count
        if not count:
            self.faults.append("no webhook was recent enough to be verified in TypeScript")


async def _count_accepted_in_typescript(
    secret: str, good: Sequence[ReceivedWebhook], bad: Sequence[ReceivedWebhook]
) -> int:
    directory = await npm.install_sdk()
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, webhooks in (("good", good), ("bad", bad)):
            files.append(Path(folder) / f"{name}.json")
            files[-1].write_text(json.dumps([{"body": each.body, "headers": each.headers} for each in webhooks]))
        script = directory / f"webhooks-{secrets.token_hex(4)}.mts"
        script.write_bytes((npm.SOURCE / "webhooks.mts").read_bytes())
        try:
            output = await npm.run_program(
                npm.node(),
                *(script.name, secret, *map(str, files)),
                directory=directory,
                environment={"PATH": "/usr/bin:/bin", "HOME": folder, "TZ": "UTC"},
                seconds=60,
            )
        finally:
            script.unlink()
    return int(output)


async def _try_addresses(faults: list[str]) -> int:
    """Sends to each trick with a policy that allows no private address. Returns the number of tricks."""
    names = TrickNames()
    lookup, address_check._NAME_LOOKUP = address_check._NAME_LOOKUP, NameLookup(names.getaddrinfo)
    sender = WebhookSender(WebhookAccess(AddressPolicy(), allow_http=True), max_seconds=2)
    try:
        async with WebhookReceiver() as target:
            urls = [*trick_urls(target.port), *[f"http://{REBINDING_NAME}:{target.port}/trick"] * 2]
            for url in urls:
                result = await sender.send(url, "whdl_trick", "{}", ["whsec_AAAA"])
                if result.is_success or result.status_code is not None:
                    faults.append(f"{url} was reached")
            if target.received:
                faults.append(f"{len(target.received)} requests reached loopback")
    finally:
        await sender.aclose()
        address_check._NAME_LOOKUP = lookup
    if len(urls) < _MIN_TRICKS:
        faults.append(f"{len(urls)} tricks, fewer than {_MIN_TRICKS}")
    return len(urls)


def _figure(trial: _Trial, arrived: int, tricks: int) -> Figure:
    faults = trial.faults
    headline = f"{arrived:,} deliveries, {trial.kills} kills: none lost; {tricks} address tricks: none worked"
    repeated = len(trial.receiver.accepted) - arrived
    summary = (
        f"{arrived:,} deliveries to {len(_ACCEPTING)} endpoints with {trial.kills} kills of workers: each arrived, "
        f"{repeated} more than once; in order where asked; signatures verified: "
        f"{', '.join(f'{number:,} in {name}' for name, number in trial.verified.items())}; slowest turn meanwhile "
        f"{trial.slowest_turn:.1f} s; {tricks} address tricks, none reached a private address"
    )
    if faults:
        headline, summary = f"{arrived:,} deliveries: {len(faults)} faults", f"the first of {len(faults)}: {faults[0]}"
    details: dict[str, Any] = {
        "faults": faults[:20],
        "kills": trial.kills,
        "repeated": repeated,
        "slowest turn": trial.slowest_turn,
        "verified": trial.verified,
        "tricks": tricks,
    }
    return Figure(headline=headline, summary=summary, holds=not faults, details=details)
