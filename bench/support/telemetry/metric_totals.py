"""Computes the same totals in two ways: from the log with separate SQL, and from `/metrics` of every process."""

import asyncio
import re
import urllib.request
from collections import Counter
from typing import Any, Final

import asyncpg
from prometheus_client.parser import text_string_to_metric_families

from bench.prove.figure import require
from bench.support.cluster import Cluster

Totals = Counter[tuple[str, ...]]
"""Totals by the counted thing and its labels. Costs are in millionths of a dollar."""

_SERVED: Final = re.compile(r'"action": "metrics\.served", "address": "([\d.:]+)"')
_BUILT_IN: Final = frozenset({"bash", "read", "write", "edit", "glob", "grep", "web_fetch", "web_search"})
_COUNTED: Final = {
    "footplate_turns_total": ("turns", "status", "harness"),
    "footplate_tokens_total": ("tokens", "kind", "model"),
    "footplate_tool_calls_total": ("tools", "tool", "outcome"),
    "footplate_model_requests_total": ("model requests", "model", "outcome"),
    "footplate_cost_usd_total": ("cost", "model"),
    "footplate_queue_wait_seconds_count": ("claimed",),
}
_SENDS: Final = ("POST", "/v1/sessions/{session_id}/events", "200")

_TURNS: Final = """
select status, config ->> 'harness' as harness, config ->> 'model' as model, ended_at is not null as ended,
       input_tokens, output_tokens, cache_read, cache_write, coalesce(cost_microusd, 0) as cost
from turns
"""
_TOOLS: Final = """
select u.body ->> 'name' as name, r.body ->> 'is_error' as is_error, count(*) as calls
from events u
join events r on r.session_id = u.session_id and r.type = 'agent.tool_result' and r.body ->> 'tool_use_id' = u.event_id
where u.type = 'agent.tool_use' group by 1, 2
"""
_REQUESTS: Final = """
select t.config ->> 'model' as model, e.body ->> 'is_error' as is_error, count(*) as requests
from events e join turns t on t.session_id = e.session_id and t.id = e.turn_id
where e.type = 'span.model_request_end' group by 1, 2
"""
_CUSTOM_CALLS: Final = "select count(*) from events where type = 'agent.custom_tool_use'"
_USER_EVENTS: Final = "select count(*) from events where type like 'user.%' and ref_seq is null"


async def totals_from_log(cluster: Cluster) -> Totals:
    found: Totals = Counter()
    connection = await asyncpg.connect(cluster.settings.database_url)
    try:
        for row in await connection.fetch(_TURNS):
            _add_turn(found, row)
        for row in await connection.fetch(_TOOLS):
            name = row["name"] if row["name"] in _BUILT_IN else "other"
            found["tools", name, "error" if row["is_error"] == "true" else "ok"] += row["calls"]
        for row in await connection.fetch(_REQUESTS):
            outcome = "error" if row["is_error"] == "true" else "ok"
            found["model requests", row["model"], outcome] += row["requests"]
        found["tools", "custom", "asked"] += await connection.fetchval(_CUSTOM_CALLS)
        found["sends",] += await connection.fetchval(_USER_EVENTS)
    finally:
        await connection.close()
    return +found


def _add_turn(found: Totals, row: Any) -> None:
    found["claimed",] += 1
    if row["ended"]:
        found["turns", row["status"], row["harness"]] += 1
    model = row["model"]
    for kind in ("input", "output", "cache_read", "cache_write"):
        column = kind if kind.startswith("cache") else f"{kind}_tokens"
        found["tokens", kind, model] += row[column]
    found["cost", model] += row["cost"]


async def totals_from_metrics(cluster: Cluster) -> Totals:
    """Returns the totals of the metrics, summed over the API and all workers."""
    found: Totals = Counter()
    for text in await scrape(cluster):
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name == "footplate_http_requests_total":
                    labels = tuple(sample.labels[name] for name in ("method", "route", "status"))
                    found["sends",] += int(sample.value) if labels == _SENDS else 0
                elif sample.name in _COUNTED:
                    what, *labels_of = _COUNTED[sample.name]
                    value = sample.value * 1_000_000 if what == "cost" else sample.value
                    found[what, *(sample.labels[name] for name in labels_of)] += round(value)
    return +found


async def scrape(cluster: Cluster) -> list[str]:
    token = (cluster.directory / "data" / "metrics-token").read_text().strip()
    return [await asyncio.to_thread(_get, address, token) for address in metrics_addresses(cluster)]


def metrics_addresses(cluster: Cluster) -> list[str]:
    """Returns the metrics addresses, which each process writes to its log."""
    found = [_SERVED.findall(program.log.read_text()) for program in (*cluster.apis, *cluster.workers)]
    require(holds=all(found), otherwise="a process did not log its metrics address")
    return [served[-1] for served in found]


def _get(address: str, token: str) -> str:
    # Ignores proxies that are configured in this machine's environment.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.addheaders = [("Authorization", f"Bearer {token}")]
    with opener.open(f"http://{address}/metrics", timeout=10) as response:
        return str(response.read().decode())


def differences(log: Totals, metrics: Totals) -> list[str]:
    return [
        f"{' '.join(name)}: {log[name]} in the log, {metrics[name]} in the metrics"
        for name in sorted({*log, *metrics})
        if log[name] != metrics[name]
    ]
