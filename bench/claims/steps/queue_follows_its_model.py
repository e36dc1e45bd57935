"""A queue that many clients change at once follows a model: in order, one step at a time, none lost or repeated."""

import asyncio
import random
import secrets
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from bench.claims.core.kill_any_process import SETTINGS
from bench.prove.figure import Figure
from bench.support.clients import Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.queue.http_access import HttpQueue
from bench.support.queue.model import QueueModel, QueueViolation
from bench.support.queue.random_changes import RandomChanges
from bench.support.queue.store_access import StoreQueue
from footplate.domain import ids
from footplate.domain.organisations.principals import Principal
from footplate.domain.sessions.steps import StepState
from footplate.stack.services.service import Service
from footplate.store.api_reads import ApiReads
from footplate.store.database import Database
from footplate.store.object_store import Objects

_ROUNDS: Final = 12
_CLIENTS: Final = 3
_AT_ONCE: Final = 10
_PATIENCE: Final = 240.0
_READING: Final = "count"
_MAX_READS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    on_store: int
    undisturbed: int
    killed: int


FULL: Final = Size(on_store=2000, undisturbed=140, killed=60)
QUICK: Final = Size(on_store=20, undisturbed=4, killed=2)


@dataclass(slots=True)
class _Findings:
    sequences: Counter[str] = field(default_factory=Counter)
    changes: int = 0
    refused: int = 0
    steps: int = 0
    starts: int = 0
    unfinished: int = 0
    """Starts whose command did not run, because its worker was lost."""
    kills: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    chance = random.Random(seed)
    size = QUICK if quick else FULL
    found = _Findings()
    async with open_cluster(apis=2, workers=2, environment=SETTINGS) as cluster:
        await _run_on_store(cluster, size.on_store, chance, found)
        print(f"  {size.on_store} sequences on the store", flush=True)
        async with Client(cluster) as client:
            agent = await client.agent(extra_body={"harness": "shell"})
            for kind, number in (("undisturbed", size.undisturbed), ("killed", size.killed)):
                for start in range(0, number, _AT_ONCE):
                    await _run_batch(cluster, client, agent, chance, found, kind, min(_AT_ONCE, number - start))
                    print(f"  {found.sequences[kind]} of {number} sequences {kind}", flush=True)
    return _figure(found)


async def _run_on_store(cluster: Cluster, number: int, chance: random.Random, found: _Findings) -> None:
    database = await Database.open(cluster.settings.database_url, size=10)
    objects = Objects.open(None, cluster.directory / "store-objects")
    principal = Principal(ids.new_id(ids.ORGANISATION), ids.new_id(ids.API_KEY), "model", frozenset())
    try:
        for start in range(0, number, _AT_ONCE):
            seeds = [chance.randrange(2**32) for _ in range(min(_AT_ONCE, number - start))]
            await asyncio.gather(*(_run_one_on_store(database, objects, principal, seed, found) for seed in seeds))
    finally:
        await database.close()


async def _run_one_on_store(
    database: Database, objects: Objects, principal: Principal, seed: int, found: _Findings
) -> None:
    chance = random.Random(seed)
    queue = await StoreQueue.create(database, objects, principal)
    clients = RandomChanges(queue, chance, lambda name, _: f"echo {name}")
    work = [partial(queue.run_step, chance)] * 4
    for _ in range(_ROUNDS):
        await asyncio.gather(*(clients.act(*work) for _ in range(_CLIENTS)))
    model = QueueModel()
    try:
        for position in await queue.positions():
            model.apply(position)
    except QueueViolation as violation:
        found.faults.append(f"seed {seed}: {violation}")
        return
    steps = await queue.steps()
    if [step.id for step in steps if step.state is StepState.PENDING] != model.pending:
        found.faults.append(f"seed {seed}: the pending steps have another order")
    if {step.id: step.state.value for step in steps} != model.states:
        found.faults.append(f"seed {seed}: the states differ")
    _count(found, "store", clients, model)


async def _run_batch(
    cluster: Cluster, client: Client, agent: str, chance: random.Random, found: _Findings, kind: str, number: int
) -> None:
    async with asyncio.TaskGroup() as group:
        runs = [
            group.create_task(_run_one(cluster, client, agent, chance.randrange(2**32), found, kind))
            for _ in range(number)
        ]
        if kind == "killed":
            group.create_task(_kill_meanwhile(cluster, runs, chance, found))


async def _kill_meanwhile(
    cluster: Cluster, runs: "list[asyncio.Task[None]]", chance: random.Random, found: _Findings
) -> None:
    """Kills workers, APIs and Temporal in turn until all sequences have ended."""
    temporal = cluster.stack.temporal
    assert temporal is not None
    victims: list[tuple[str, Service]] = [
        *(("worker", worker) for worker in cluster.workers),
        *(("api", api) for api in cluster.apis),
        ("temporal", temporal),
    ]
    while not all(run.done() for run in runs):
        await asyncio.sleep(0.5 + chance.random() * 2)
        name, victim = chance.choice(victims)
        await victim.kill()
        found.kills[name] += 1
        await victim.start()


async def _run_one(cluster: Cluster, client: Client, agent: str, seed: int, found: _Findings, kind: str) -> None:
    chance = random.Random(seed)
    session_id = await client.session(agent)
    async with HttpQueue(chance.choice(cluster.base_urls), cluster.key, session_id) as queue:
        clients = RandomChanges(queue, chance, _command)
        for _ in range(_ROUNDS):
            await asyncio.gather(*(clients.act() for _ in range(_CLIENTS)))
            await asyncio.sleep(chance.random() * 0.3)
        try:
            ran = await _read_what_ran(queue)
        except TimeoutError as error:
            found.faults.append(f"{kind} {session_id}: {error}")
            return
        steps = await queue.steps()
    model = await _read_model(cluster, session_id, found, kind)
    if model is not None:
        _check(model, steps, ran, f"{kind} {session_id}", found)
        _count(found, kind, clients, model)


def _command(name: str, fails: bool) -> str:  # noqa: FBT001 - as `RandomChanges` calls it
    return f"echo {name} >> ran.txt{'; false' if fails else ''}"


async def _read_what_ran(queue: HttpQueue) -> Counter[str]:
    """Returns how often each command ran. The step that reads this is repeated if its own worker is killed."""
    for _ in range(_MAX_READS):
        await queue.run_to_end(_PATIENCE)
        reading = await queue.add({"kind": "shell", "name": _READING, "command": "cat ran.txt || true"})
        await queue.change_playback("play")
        report = await queue.wait_for(reading, "completed", "failed", patience=_PATIENCE)
        if report["state"] == "completed":
            return Counter(str(report["result"]["stdout"]).split())
    raise TimeoutError(f"the step that reads which commands ran failed {_MAX_READS} times")


async def _read_model(cluster: Cluster, session_id: str, found: _Findings, kind: str) -> QueueModel | None:
    database = await Database.open(cluster.settings.database_url, size=2)
    model = QueueModel()
    try:
        async with database.connection() as connection:
            organisation = await connection.fetchval("select organisation from sessions where id = $1", session_id)
        reads = ApiReads(database, Objects.open(None, cluster.directory / "data"))
        for position in await reads.positions(organisation, session_id, 0, 100_000):
            model.apply(position)
    except QueueViolation as violation:
        found.faults.append(f"{kind} {session_id}: {violation}")
        return None
    finally:
        await database.close()
    return model


def _check(model: QueueModel, steps: list[dict[str, object]], ran: Counter[str], where: str, found: _Findings) -> None:
    if {str(step["id"]): step["state"] for step in steps} != model.states:
        found.faults.append(f"{where}: the states differ from the model")
    starts_by_name: Counter[str] = Counter()
    for step in steps:
        starts_by_name[str(step["name"])] += model.starts.get(str(step["id"]), 0)  # a repeated step has copies
    for step in {str(step["name"]): step for step in steps if step["name"] != _READING}.values():
        starts, times = starts_by_name[str(step["name"])], ran[str(step["name"])]
        if times > starts or (step["state"] == "completed" and times == 0):
            found.faults.append(
                f"{where}: {step['name']} is {step['state']}, was started {starts} times and ran {times} times: "
                f"{step['result']}"
            )
        found.unfinished += starts - times


def _count(found: _Findings, kind: str, clients: RandomChanges, model: QueueModel) -> None:
    found.sequences[kind] += 1
    found.changes += clients.made
    found.refused += clients.refused
    found.steps += len(model.states)
    found.starts += sum(model.starts.values())


def _figure(found: _Findings) -> Figure:
    sequences = sum(found.sequences.values())
    kills = ", ".join(f"{number} of {name}" for name, number in sorted(found.kills.items()))
    return Figure(
        headline=f"{sequences:,} sequences follow the model"
        if not found.faults
        else f"{len(found.faults)} faults in {sequences:,} sequences",
        summary=f"{found.sequences['store']} sequences of three concurrent clients on the store and "
        f"{found.sequences['undisturbed'] + found.sequences['killed']} on the whole engine, "
        f"{found.sequences['killed']} of them with kills ({kills}): {found.changes} changes, {found.refused} refused, "
        f"{found.steps} steps, {found.starts} starts, {found.unfinished} of them "
        f"without effect because a worker was lost; "
        + (f"{len(found.faults)} faults, the first: {found.faults[0]}" if found.faults else "no fault"),
        holds=not found.faults,
        details={"faults": [*found.faults[:20]], "kills": dict(found.kills), "sequences": dict(found.sequences)},
    )
