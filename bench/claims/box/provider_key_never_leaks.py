"""The provider's API key never leaks: it serves every model request and is readable nowhere, in any encoding.

The key is a canary. The acceptance scenarios run with it on all wire formats, with crashes, exceptions and a provider
that repeats the key in its errors; an agent copies everything that it can read in its sandbox. Then logs, stores,
telemetry, processes and that copy are searched. To show that the search works, other canaries are planted in each
location and in each form, and the search has to find all of them.
"""

import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import asyncpg

from bench.claims.door.same_agent_on_every_wire_format import FORMATS
from bench.prove.figure import Figure, require
from bench.support import quickstart_scenarios
from bench.support.canary import planting, stored_data
from bench.support.canary.canary_encodings import Canary
from bench.support.clients import TOOLSET, Client
from bench.support.cluster import Cluster, open_cluster
from bench.support.forked_program import real_starts
from bench.support.provider_scenarios.scenarios import MAX_FAILURES, Scenario, build_scenarios
from bench.support.provider_scenarios.web_site import WebSite
from bench.support.telemetry import trace_checks
from bench.support.telemetry.otlp_collector import open_collector
from bench.support.telemetry.telemetry_sink import TelemetrySink, open_sink
from footplate.domain.sessions import events as ev
from footplate.stack import Stack
from footplate.testing import http_error, replies, reply, text, tool

_QUICK_SCENARIOS: Final = ("work", "429")
_TOOLS: Final = [{**TOOLSET, "configs": [{"name": name, "enabled": True} for name in ("web_fetch", "web_search")]}]
_SETTINGS: Final = {
    "FOOTPLATE_METRICS_ADDRESS": "127.0.0.1:0",
    "FOOTPLATE_RETRY_WAIT": "0.1",
    "FOOTPLATE_MAX_FAILURES": str(MAX_FAILURES),
    "FOOTPLATE_HEARTBEAT_TIMEOUT": "6",
    "FOOTPLATE_LEASE": "4",
    "OTEL_BSP_SCHEDULE_DELAY": "200",
}
# Copies every readable file except those of the operating system and the interpreter, which existed before.
_COPY_COMMAND: Final = f"""
cd /; {{ env -0; export -p; set; mount; ls -laR /run /home /mnt /etc /tmp /dev 2>&1
timeout 20 find /proc -maxdepth 3 -type f ! -name kmsg ! -name 'kpage*' ! -name mem ! -name pagemap \
    -exec timeout 2 head -c 1000000 {{}} + 2>&1
find / \\( -path /usr -o -path /proc -o -path /sys -o -path /dev -o -path '*/lib/python3*' \
    -o -name {stored_data.COPY_FILE} \\) -prune -o -type f -readable -exec cat {{}} + 2>&1
timeout 5 head -c 10000000 /proc/1/mem /proc/1/environ /proc/$$/mem 2>&1; }} > /workspace/{stored_data.COPY_FILE}
sleep 1; wc -c < /workspace/{stored_data.COPY_FILE}
"""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    key = Canary.new()
    # `/proc/PID/environ` of a forked worker would not show the worker's own environment.
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory, real_starts():
        async with (
            open_sink() as sink,
            open_trace_collector(sink) as endpoint,
            WebSite() as site,
            Stack(Path(directory)) as stack,
        ):
            environment = {
                **_SETTINGS,
                **site.settings(),
                **{f"FOOTPLATE_{name}_API_KEY": key.value for name in ("ANTHROPIC", "OPENAI", "SEARCH")},
                "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
                "SENTRY_DSN": sink.dsn,
            }
            async with (
                open_cluster(workers=2, environment=environment, stack=stack) as cluster,
                Client(cluster) as client,
            ):
                scenario_run = await _run_scenarios(cluster, client, sink, site, key, quick=quick)
                await _check_key_was_used(cluster, key)
                finds, searched = await search_data(cluster, sink, [key])
                planted, missed = await _find_planted_keys(cluster, client, sink, endpoint, scenario_run)
    megabytes = sum(searched.values()) / 1e6
    headline = (
        f"{len(finds)} copies of the key in {megabytes:.0f} MB; {planted - len(missed)} of {planted} planted keys found"
    )
    summary = (
        f"a canary key served {scenario_run.requests} model requests of {scenario_run.turns} turns; a "
        f"search of {len(searched)} "
        f"locations ({megabytes:.0f} MB) for {len(key.list_encodings())} forms of it found 0 copies, and "
        f"{planted - len(missed)} of {planted} planted canaries"
    )
    if finds or missed:
        summary = f"found: {sorted(finds)[:5]}; planted and not found: {missed[:5]}"
    elif set(searched) != set(stored_data.PLACES):
        headline = f"only {len(searched)} of {len(stored_data.PLACES)} locations were searched"
    return Figure(
        headline=headline,
        summary=summary,
        holds=not finds and not missed and set(searched) == set(stored_data.PLACES),
        details={"finds": [*map(str, sorted(finds))], "missed": [*missed], "bytes": dict(searched)},
    )


class _ScenarioRun:
    def __init__(self) -> None:
        self.turns = 0
        self.requests = 0
        self.spied_session_id = ""
        """The session whose agent copied everything that it could read."""


async def _run_scenarios(
    cluster: Cluster, client: Client, sink: TelemetrySink, site: WebSite, key: Canary, *, quick: bool
) -> _ScenarioRun:
    scenario_run, stop = _ScenarioRun(), asyncio.Event()
    seen: list[bytes] = []
    watching = asyncio.create_task(stored_data.watch_processes(cluster, seen, stop))
    await quickstart_scenarios.install_scripts(cluster)
    for live in quickstart_scenarios.SCENARIOS[:2] if quick else quickstart_scenarios.SCENARIOS:
        await live(client)
    agent = await client.agent(tools=_TOOLS)
    chosen = [story for story in build_scenarios(site) if not quick or story.name in _QUICK_SCENARIOS]
    for story in chosen:
        await cluster.model.install(story.script_name, story.script)
        for model in FORMATS:
            await _run_scenario(client, story, agent, model)
    await trace_checks.check_one_turn(cluster, client, sink)
    if not quick:
        await trace_checks.check_after_crash(cluster, client, sink)
    async with Client(cluster, key=await cluster.create_key("broken")) as broken:
        await trace_checks.check_exception(cluster, broken, sink, organisation="broken")
    await run_provider_errors(cluster, client, key, agent, FORMATS)
    scenario_run.spied_session_id = await client.session()
    await copy_readable_files(cluster, client, scenario_run.spied_session_id)
    stop.set()
    require(holds=await watching > 0, otherwise="no process was inspected")
    found = [form for data in seen for form in key.find_in(data)]
    require(holds=not found, otherwise=f"a process of a turn has the key: {found[:3]}")
    scenario_run.requests = len(await cluster.model.requests(bodies=False))
    scenario_run.turns = await _count_turns(cluster)
    return scenario_run


async def _run_scenario(client: Client, scenario: Scenario, agent: str, model: str) -> None:
    session_id = await client.session(_with_model(agent, model))
    async with client.stream(session_id, deltas=[ev.AGENT_MESSAGE, ev.AGENT_THINKING]) as stream:
        await client.send_text(session_id, f"Please. [[script:{scenario.script_name}]]")
        if scenario.interrupted_at is not None:
            await stream.until(scenario.interrupted_at)
            await client.interrupt(session_id)
        await stream.until_idle()


def _with_model(agent: str, model: str) -> Any:
    """Returns the same agent with another model."""
    return {"type": "agent_with_overrides", "id": agent, "model": model}


async def _count_turns(cluster: Cluster) -> int:
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:
        return int(await connection.fetchval("select count(*) from turns"))
    finally:
        await connection.close()


async def run_provider_errors(
    cluster: Cluster, client: Client, key: Canary, agent: str, models: Collection[str]
) -> None:
    """Runs turns against providers that repeat the key: with a 401 in body and header, and with a 500."""
    wrong = f"Incorrect API key provided: {key.value}"
    await cluster.model.install("repeats", replies(reply(http_error(401, message=wrong, headers={"x-key": key.value}))))
    await cluster.model.install("fails", replies(reply(http_error(500, message=wrong), repeat=True)))
    for script in ("repeats", "fails"):
        for model in models:
            session_id = await client.session(_with_model(agent, model))
            seen = await client.run_turn(session_id, f"Please. [[script:{script}]]")
            errors = [event["error"]["message"] for event in seen if event["type"] == ev.SESSION_ERROR]
            require(holds=bool(errors), otherwise=f"{model}: no error was reported")
            require(
                holds=all("[removed]" in error for error in errors),
                otherwise=f"{model}: not all of {len(errors)} errors have the key removed",
            )


async def copy_readable_files(cluster: Cluster, client: Client, session_id: str) -> None:
    await cluster.model.install("spy", replies([tool("bash", {"command": _COPY_COMMAND})], [text("Seen.")]))
    seen = await client.run_turn(session_id, "Look around. [[script:spy]]", patience=180)
    results = [event for event in seen if event["type"] == ev.AGENT_TOOL_RESULT]
    require(holds=not results[0]["is_error"], otherwise=f"the agent could not copy what it can read: {results}")
    copied = cluster.directory / "data" / "workspaces" / "default" / session_id / stored_data.COPY_FILE
    require(holds=copied.stat().st_size > 100_000, otherwise="the agent copied less than 100 kB")


async def _check_key_was_used(cluster: Cluster, key: Canary) -> None:
    """Checks that every request at the provider has the key, and no other credential."""
    credentials = Counter(str(record["headers"].get("authorization")) for record in await cluster.model.requests())  # pyrefly: ignore[missing-attribute]
    require(holds=set(credentials) == {f"Bearer {key.value}"}, otherwise=f"{len(credentials)} credentials were used")


async def search_data(
    cluster: Cluster, sink: TelemetrySink, canaries: list[Canary]
) -> tuple[set[tuple[str, str, str]], Counter[str]]:
    """Returns each find as (core of the canary, location, form), and the bytes searched by location."""
    looks = [(canary.core, form, look) for canary in canaries for form, look in canary.list_encodings().items()]
    finds: set[tuple[str, str, str]] = set()
    searched: Counter[str] = Counter()
    async for place, data in stored_data.read_everything(cluster, sink):
        searched[place] += len(data)
        finds |= {(core, place, form) for core, form, look in looks if look in data}
    return finds, searched


async def _find_planted_keys(
    cluster: Cluster, client: Client, sink: TelemetrySink, endpoint: str, scenario_run: _ScenarioRun
) -> tuple[int, list[str]]:
    plants = planting.new_plants()
    await planting.plant(cluster, sink, endpoint, plants, scenario_run.spied_session_id)
    await copy_readable_files(cluster, client, scenario_run.spied_session_id)
    with planting.planted_processes(cluster, plants):
        finds, _ = await search_data(cluster, sink, list(plants.values()))
    found = {(core, place) for core, place, _ in finds}
    return len(plants), [
        f"{place}, {form}" for (place, form), canary in plants.items() if (canary.core, place) not in found
    ]


@asynccontextmanager
async def open_trace_collector(sink: TelemetrySink) -> AsyncIterator[str]:
    with tempfile.TemporaryDirectory(prefix="footplate-") as directory:
        async with open_collector(Path(directory), sink.url) as endpoint:
            yield endpoint
