"""Each signed delivery to a trigger acts once although it is repeated and the API is killed; no other delivery acts.

Deliveries go to two API processes, with duplicates at the same time, requests that the sender gives up, and retries.
One process after the other is killed, in the middle of a delivery or at any time. Each delivery must have created one
session or one step, and its duplicates must have received the same response. Deliveries that are forged, replayed, late
or too large, or that are sent to a trigger that is paused or removed, must have no effect.
"""

import asyncio
import json
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import asyncpg
import httpx2
from standardwebhooks import Webhook

from bench.prove.figure import Figure
from bench.support.cluster import Cluster, open_cluster
from footplate.client import AsyncFootplate, Trigger
from footplate.client.webhooks import sign_delivery
from footplate.domain.organisations.webhooks import new_secret
from footplate.failpoints import TRIGGER_POINTS
from footplate.stack.orphan_processes import wait_until

_SETTINGS: Final = {"FOOTPLATE_TRIGGER_BYTES": "4096", "FOOTPLATE_SWEEP_INTERVAL": "5"}
_STEPS: Final = [{"kind": "shell", "command": "echo ${payload.number}", "condition": "false"}]
_SENDERS: Final = 12
_RESPONSE_SECONDS: Final = 30.0
_DELIVERY_SECONDS: Final = 300.0
_WORK_SECONDS: Final = 900.0
_FORGED: Final = 10_000_000
"""The numbers of deliveries that must not act start here."""


@dataclass(frozen=True, slots=True)
class Size:
    deliveries: int
    forged: int
    kills: int
    queues: int
    """Sessions that get steps. The others are created."""


_FULL: Final = Size(deliveries=5_000, forged=200, kills=20, queues=6)
_QUICK: Final = Size(deliveries=60, forged=40, kills=2, queues=1)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    size = _QUICK if quick else _FULL
    async with (
        open_cluster(apis=2, workers=1, environment=_SETTINGS) as cluster,
        AsyncFootplate(cluster.base_urls[0], cluster.key, patience=120) as client,
        httpx2.AsyncClient(trust_env=False, timeout=_RESPONSE_SECONDS) as http,
    ):
        trial = _Trial(cluster, client, http, random.Random(seed), size)
        await trial.run()
    return _figure(trial)


@dataclass(slots=True)
class _Trial:
    cluster: Cluster
    client: AsyncFootplate
    http: httpx2.AsyncClient
    rng: random.Random
    size: Size
    faults: list[str] = field(default_factory=list)
    kills: int = 0
    requests: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    _prepared_kills: int = 0
    _triggers: list[Trigger] = field(default_factory=list)
    """Those that create sessions, and then those that add steps."""
    _stopped: list[Trigger] = field(default_factory=list)
    """A paused and a removed one."""
    _sessions: dict[int, str] = field(default_factory=dict)
    """The session of the response to each delivery, by number."""

    async def run(self) -> None:
        await self._create_triggers()
        began = time.monotonic()
        numbers = iter(range(self.size.deliveries))
        forged = iter(range(self.size.forged))
        every = max(1, self.size.deliveries // self.size.forged)

        async def send_some() -> None:
            for number in numbers:
                await self._wait_for_kill(number)
                await self._deliver(number)
                if number % every == 0 and (other := next(forged, None)) is not None:
                    await self._send_forged(other)

        async with asyncio.TaskGroup() as group:
            group.create_task(self._kill_apis())
            for _ in range(_SENDERS):
                group.create_task(send_some())
        for other in forged:
            await self._send_forged(other)
        print(f"  {self.requests} requests, {self.kills} kills, {time.monotonic() - began:.0f} s", flush=True)
        await self._check_effects()

    async def _create_triggers(self) -> None:
        agent = await self.client.agents.create(name="a", model="claude-sonnet-5", harness="native")
        environment = await self.client.environments.create(name="e")
        target: dict[str, Any] = {"agent": agent.id, "environment_id": environment.id}
        fields: dict[str, Any] = {"steps": _STEPS, "max_per_minute": 6000}
        for number in range(2):
            title = "${payload.number}"
            self._triggers.append(
                await self.client.triggers.create(
                    name=f"sessions {number}", title=title, ends_when_done=True, **target, **fields
                )
            )
        for number in range(self.size.queues):
            session = await self.client.sessions.create(agent=agent.id, environment_id=environment.id)
            self._triggers.append(
                await self.client.triggers.create(name=f"steps {number}", session_id=session.id, **fields)
            )
        for name in ("paused", "removed"):
            self._stopped.append(await self.client.triggers.create(name=name, **target, **fields))
        await self.client.triggers.update(self._stopped[0].id, paused=True)
        await self.client.triggers.archive(self._stopped[1].id)

    def _trigger_of(self, number: int) -> Trigger:
        """Nine of ten deliveries create a session, the others add a step."""
        is_step = number % 10 == 0
        chosen = self._triggers[2:] if is_step else self._triggers[:2]
        return chosen[number // 10 % len(chosen)]

    async def _deliver(self, number: int) -> None:
        """Sends a delivery until it is accepted, and sometimes again, at the same time or later."""
        trigger, body = self._trigger_of(number), json.dumps({"number": number})
        delivery_id = f"msg_{number}"
        send = [self._send_until_accepted(trigger, delivery_id, body)]
        if self.rng.random() < 0.3:
            send += [self._send_until_accepted(trigger, delivery_id, body) for _ in range(self.rng.randint(1, 2))]
        receipts = await asyncio.gather(*send)
        if self.rng.random() < 0.2:
            receipts.append(await self._send_until_accepted(trigger, delivery_id, body))
        if any(receipt != receipts[0] for receipt in receipts):
            self.faults.append(f"{delivery_id}: duplicates received different responses: {receipts}")
        self._sessions[number] = str(receipts[0]["session_id"])

    async def _send_until_accepted(self, trigger: Trigger, delivery_id: str, body: str) -> dict[str, Any]:
        """Sends a delivery as a sender with retries does. Sometimes it does not wait for the response."""
        deadline = time.monotonic() + _DELIVERY_SECONDS
        patience = self.rng.choice((0.005, _RESPONSE_SECONDS, _RESPONSE_SECONDS))
        last = ""
        while time.monotonic() < deadline:
            try:
                async with asyncio.timeout(patience):
                    headers = sign_delivery(str(trigger.secret), delivery_id, body)
                    response = await self._post(trigger.id, body.encode(), headers)
                if response.is_success:
                    receipt: dict[str, Any] = response.json()
                    return receipt
                last = response.text
            except (httpx2.HTTPError, TimeoutError) as error:
                last = repr(error)
            patience = _RESPONSE_SECONDS
            await asyncio.sleep(self.rng.uniform(0.02, 0.2))
        raise AssertionError(f"{delivery_id} is not accepted: {last}")

    async def _post(self, trigger_id: str, body: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        self.requests += 1
        url = f"{self.rng.choice(self.cluster.base_urls)}/v1/triggers/{trigger_id}"
        return await self.http.post(url, content=body, headers=headers)

    async def _send_forged(self, other: int) -> None:
        """Sends a delivery that must not act, until a process responds to it."""
        name, build = _FORGERIES[other % len(_FORGERIES)]
        trigger_id, body, headers, expected = build(self, other)
        deadline = time.monotonic() + _DELIVERY_SECONDS
        while time.monotonic() < deadline:
            try:
                response = await self._post(trigger_id, body, headers)
                break
            except httpx2.HTTPError:
                await asyncio.sleep(0.1)
        else:
            raise AssertionError(f"{name}: no process responds")
        if response.status_code != expected:
            self.faults.append(f"{name}: {response.status_code} instead of {expected}: {response.text[:200]}")
        self.refused[name] += 1

    def any_trigger(self) -> Trigger:
        return self.rng.choice(self._triggers)

    @property
    def stopped(self) -> Sequence[Trigger]:
        return self._stopped

    async def _wait_for_kill(self, number: int) -> None:
        """Waits until the kill to which the delivery belongs is prepared, so that each kill has deliveries to hit."""
        wanted = min(number * (self.size.kills + 1) // self.size.deliveries, self.size.kills)

        async def is_prepared() -> bool:
            return self._prepared_kills >= wanted

        await wait_until(is_prepared, _WORK_SECONDS)

    async def _kill_apis(self) -> None:
        """Kills one process after the other, in a delivery or at any time, and starts it again."""
        for number in range(self.size.kills):
            index = number % 2
            await asyncio.sleep(self.rng.uniform(0.2, 1.0))
            if number % 3 == 2:
                await self.cluster.kill_api(index)
                self._prepared_kills += 1
            else:
                (self.cluster.failpoints / TRIGGER_POINTS[number % 3]).write_text("kill")
                self._prepared_kills += 1
                if not await wait_until(self._has_dead_api, _DELIVERY_SECONDS):
                    self.faults.append("no process was killed, because none has received a delivery")
            for dead, api in enumerate(self.cluster.apis):
                if not api.is_running:
                    self.kills += 1
                    await self.cluster.restart_api(dead)

    async def _has_dead_api(self) -> bool:
        return not all(api.is_running for api in self.cluster.apis)

    async def _check_effects(self) -> None:
        connection = await asyncpg.connect(self.cluster.settings.database_url)
        try:
            rows = await connection.fetch("select delivery_id, outcome, session_id from trigger_deliveries")
            created = await connection.fetch("select id, title from sessions where title ~ '^[0-9]+$'")
            steps = await connection.fetch(
                "select session_id, definition -> 'payload_values' ->> 'number' as number from steps"
                " where definition is not null"
            )

            async def has_ended() -> bool:
                pending: int = await connection.fetchval("select count(*) from steps where state = 'pending'")
                return pending == 0

            if not await wait_until(has_ended, _WORK_SECONDS):
                self.faults.append("some steps did not run")
        finally:
            await connection.close()
        wanted = {f"msg_{number}": session_id for number, session_id in self._sessions.items()}
        found = {row["delivery_id"]: row["session_id"] for row in rows}
        if found != wanted or len(rows) != len(wanted):
            self.faults.append(f"{len(rows)} deliveries are recorded, and {len(wanted)} were accepted")
        by_title, by_step = Counter(int(row["title"]) for row in created), Counter(int(row["number"]) for row in steps)
        ids_by_title = {row["title"]: row["id"] for row in created}
        for number, session_id in self._sessions.items():
            is_step = self._trigger_of(number).session_id is not None
            if (by_title[number], by_step[number]) != (0 if is_step else 1, 1):
                self.faults.append(f"msg_{number}: {by_title[number]} sessions and {by_step[number]} steps")
            elif not is_step and ids_by_title[str(number)] != session_id:
                self.faults.append(f"msg_{number}: the response names another session")
        if acted := [number for number in {*by_title, *by_step} if number >= _FORGED]:
            self.faults.append(f"{len(acted)} deliveries acted that must not")


Forged = tuple[str, bytes, Mapping[str, str], int]
"""The trigger, the body, the headers and the expected status."""


def _body(other: int, padding: int = 0) -> str:
    return json.dumps({"number": _FORGED + other, "padding": "x" * padding})


def _wrong_secret(trial: _Trial, other: int) -> Forged:
    body = _body(other)
    secret = new_secret()
    return trial.any_trigger().id, body.encode(), sign_delivery(secret, f"forged_{other}", body), 401


def _secret_of_another_trigger(trial: _Trial, other: int) -> Forged:
    body = _body(other)
    signed = sign_delivery(str(trial.stopped[0].secret), f"forged_{other}", body)
    return trial.any_trigger().id, body.encode(), signed, 401


def _changed_body(trial: _Trial, other: int) -> Forged:
    trigger = trial.any_trigger()
    signed = sign_delivery(str(trigger.secret), f"forged_{other}", '{"number": 1}')
    return trigger.id, _body(other).encode(), signed, 401


def _replayed_with_another_id(trial: _Trial, other: int) -> Forged:
    trigger, body = trial.any_trigger(), _body(other)
    signed = sign_delivery(str(trigger.secret), f"forged_{other}", body)
    return trigger.id, body.encode(), {**signed, "webhook-id": f"again_{other}"}, 401


def _replayed_with_another_time(trial: _Trial, other: int) -> Forged:
    trigger, body = trial.any_trigger(), _body(other)
    old = _sign_at(trigger, other, body, seconds=-3600)
    return trigger.id, body.encode(), {**old, "webhook-timestamp": str(int(time.time()))}, 401


def _sign_at(trigger: Trigger, other: int, body: str, *, seconds: float) -> dict[str, str]:
    at = datetime.fromtimestamp(time.time() + seconds, UTC)
    signature = Webhook(str(trigger.secret)).sign(f"forged_{other}", at, body)
    return {
        "webhook-id": f"forged_{other}",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": signature,
    }


def _late(trial: _Trial, other: int) -> Forged:
    trigger, body = trial.any_trigger(), _body(other)
    return trigger.id, body.encode(), _sign_at(trigger, other, body, seconds=-310), 401


def _early(trial: _Trial, other: int) -> Forged:
    trigger, body = trial.any_trigger(), _body(other)
    return trigger.id, body.encode(), _sign_at(trigger, other, body, seconds=600), 401


def _unsigned(trial: _Trial, other: int) -> Forged:
    return trial.any_trigger().id, _body(other).encode(), {"content-type": "application/json"}, 401


def _too_large(trial: _Trial, other: int) -> Forged:
    trigger, body = trial.any_trigger(), _body(other, 5000)
    return trigger.id, body.encode(), sign_delivery(str(trigger.secret), f"forged_{other}", body), 413


def _no_object(trial: _Trial, other: int) -> Forged:
    trigger, body = trial.any_trigger(), f"[{_FORGED + other}]"
    return trigger.id, body.encode(), sign_delivery(str(trigger.secret), f"forged_{other}", body), 400


def _unknown_trigger(trial: _Trial, other: int) -> Forged:
    body = _body(other)
    signed = sign_delivery(str(trial.any_trigger().secret), f"forged_{other}", body)
    return f"trig_{secrets.token_hex(13)}", body.encode(), signed, 401


def _stopped_trigger(trial: _Trial, other: int) -> Forged:
    index, body = other // len(_FORGERIES) % 2, _body(other)
    trigger = trial.stopped[index]
    signed = sign_delivery(str(trigger.secret), f"forged_{other}", body)
    return trigger.id, body.encode(), signed, (409, 401)[index]


_FORGERIES: Final[Sequence[tuple[str, Callable[[_Trial, int], Forged]]]] = (
    ("wrong secret", _wrong_secret),
    ("secret of another trigger", _secret_of_another_trigger),
    ("changed body", _changed_body),
    ("replayed with another ID", _replayed_with_another_id),
    ("replayed with another time", _replayed_with_another_time),
    ("too late", _late),
    ("too early", _early),
    ("not signed", _unsigned),
    ("too large", _too_large),
    ("no object", _no_object),
    ("unknown trigger", _unknown_trigger),
    ("paused or removed trigger", _stopped_trigger),
)


def _figure(trial: _Trial) -> Figure:
    faults, accepted = trial.faults, len(trial._sessions)
    forged = trial.refused.total()
    headline = f"{accepted:,} deliveries, {trial.kills} kills: each acted once; {forged} invalid ones: none acted"
    summary = (
        f"{accepted:,} deliveries to 2 API processes in {trial.requests:,} requests, with duplicates, requests that "
        f"were given up, and {trial.kills} kills: each created one session or one step, and every duplicate received "
        f"the same response; {forged} deliveries that were forged, replayed, late or too large: none acted"
    )
    if faults:
        headline, summary = f"{accepted:,} deliveries: {len(faults)} faults", f"the first of {len(faults)}: {faults[0]}"
    details: dict[str, Any] = {
        "faults": faults[:20],
        "kills": trial.kills,
        "requests": trial.requests,
        "refused": {**trial.refused},
    }
    return Figure(headline=headline, summary=summary, holds=not faults, details=details)
