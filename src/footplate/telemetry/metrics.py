"""Defines all Prometheus metrics.

Each process has its own counters, which start at zero when the process starts. A process counts an event after it has
written the event to the log. If it is killed between the two steps, the event is not counted. For exact numbers, use
`GET /v1/usage`, which reads the log. Label values come from a fixed set or are the first hundred values seen, never
free text from a client.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.metrics_core import Metric

OTHER: Final = "other"
CUSTOM_TOOL: Final = "custom"
MCP_TOOL: Final = "mcp"
_FAST: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
_MICRO: Final = 1_000_000

disable_created_metrics()
REGISTRY: Final = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

HTTP_REQUESTS: Final = Counter(
    "footplate_http_requests",
    "HTTP requests that received a response.",
    ["method", "route", "status"],
    registry=REGISTRY,
)
HTTP_SECONDS: Final = Histogram(
    "footplate_http_request_seconds",
    "Time from a request's arrival to the start of its response.",
    ["method", "route"],
    buckets=_FAST,
    registry=REGISTRY,
)


class ScrapedGauge(Gauge):
    """A gauge whose values are read at each scrape, by its labels. Without values, it exports nothing."""

    read_values: Callable[[], Mapping[tuple[str, ...], float]] | None = None

    def collect(self) -> Iterable[Metric]:
        self.clear()
        for labels, value in (self.read_values() if self.read_values else {}).items():
            self.labels(*labels).set(value)
        return super().collect()


SESSIONS: Final = ScrapedGauge(
    "footplate_sessions",
    "Sessions of all organisations that have work or a pending approval, by activity. Each API process reports all.",
    ["activity"],
    registry=REGISTRY,
)
LIMITS: Final = ScrapedGauge(
    "footplate_limit",
    "Limits of organisations. Each API process reports all.",
    ["organisation", "limit"],
    registry=REGISTRY,
)
LIMITS_USED: Final = ScrapedGauge(
    "footplate_limit_used",
    "What organisations use of their limits. Each API process reports all.",
    ["organisation", "limit"],
    registry=REGISTRY,
)
LIMIT_REFUSALS: Final = Counter(
    "footplate_limit_refusals",
    "Requests that were refused because of a limit of their organisation or member.",
    ["organisation", "limit"],
    registry=REGISTRY,
)
STREAMS: Final = Gauge("footplate_streams_open", "Clients that are following a session.", registry=REGISTRY)
LOG_LAG: Final = Histogram(
    "footplate_log_lag_seconds",
    "Time from a commit to its publication, for the oldest entry of each batch.",
    buckets=_FAST,
    registry=REGISTRY,
)

TURNS: Final = Counter("footplate_turns", "Finished turns.", ["status", "harness"], registry=REGISTRY)
TURNS_RUNNING: Final = Gauge("footplate_turns_running", "Turns that this worker is running.", registry=REGISTRY)
TURN_SECONDS: Final = Histogram(
    "footplate_turn_seconds",
    "Time from the claim of a turn's last attempt to its commit.",
    ["harness"],
    buckets=_SLOW,
    registry=REGISTRY,
)
ATTEMPTS: Final = Counter(
    "footplate_turn_attempts",
    "Attempts to run turns, by kind: 'again' counts retries, for example after a lost worker, and resumed turns.",
    ["kind", "harness"],
    registry=REGISTRY,
)
QUEUE_WAIT: Final = Histogram(
    "footplate_queue_wait_seconds",
    "Time from the acceptance of an input to the claim of its turn.",
    buckets=_SLOW,
    registry=REGISTRY,
)
FIRST_TOKEN: Final = Histogram(
    "footplate_time_to_first_token_seconds",
    "Time from the acceptance of an input to the model's first text.",
    ["harness"],
    buckets=_SLOW,
    registry=REGISTRY,
)
MODEL_REQUESTS: Final = Counter("footplate_model_requests", "Model requests.", ["model", "outcome"], registry=REGISTRY)
TOKENS: Final = Counter("footplate_tokens", "Billed tokens.", ["kind", "model"], registry=REGISTRY)
COST: Final = Counter(
    "footplate_cost_usd", "Cost of requests to models with a known price.", ["model"], registry=REGISTRY
)
RELAYED_TOKENS: Final = Counter(
    "footplate_relayed_tokens",
    "Tokens that providers reported in responses which the model proxy relayed.",
    ["connection", "kind"],
    registry=REGISTRY,
)
TOOL_CALLS: Final = Counter("footplate_tool_calls", "Tool calls.", ["tool", "outcome"], registry=REGISTRY)
TOOL_SECONDS: Final = Histogram(
    "footplate_tool_seconds", "Duration of tool calls.", ["tool"], buckets=_SLOW, registry=REGISTRY
)
HOOKS: Final = Counter("footplate_hooks", "Hook runs.", ["event", "kind", "outcome"], registry=REGISTRY)
HOOK_COUNTS: Final = Counter(
    "footplate_hook_counts", "Counts reported by Python hooks, by counter name.", ["name"], registry=REGISTRY
)
GUARDIAN_KILLS: Final = Counter(
    "footplate_guardian_kills", "Times that a turn's processes were killed, by reason.", ["reason"], registry=REGISTRY
)
EXCEPTIONS: Final = Counter("footplate_exceptions", "Unexpected exceptions, by action.", ["action"], registry=REGISTRY)


class LabelValues:
    """Limits the values of a label: the first names are used unchanged, later ones become `other`."""

    def __init__(self, max_values: int = 100) -> None:
        self._max_values = max_values
        self._seen: set[str] = set()

    def __call__(self, name: str) -> str:
        if name in self._seen:
            return name
        if len(self._seen) >= self._max_values:
            return OTHER
        self._seen.add(name)
        return name


MODEL_LABELS: Final = LabelValues()
HARNESS_LABELS: Final = LabelValues()
ACTION_LABELS: Final = LabelValues()
HOOK_COUNTER_LABELS: Final = LabelValues()
ORGANISATION_LABELS: Final = LabelValues()


def tool_label(name: str, *, known: Collection[str]) -> str:
    return name if name in known else OTHER


def count_cost(model: str, microusd: int) -> None:
    COST.labels(model).inc(microusd / _MICRO)


def count_relayed_tokens(connection: str, tokens: Mapping[str, int]) -> None:
    for kind, count in tokens.items():
        RELAYED_TOKENS.labels(connection, kind.removesuffix("_tokens")).inc(count)
