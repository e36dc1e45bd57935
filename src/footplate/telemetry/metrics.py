"""Every metric of the product, by name. Counters belong to a process and begin at zero with it, as Prometheus expects.

They are counted once the log has acknowledged what they count, by the process that wrote it, so that the sum over all
processes is what the log says. A process that is killed, or loses a turn in the middle of a commit, cannot count it:
what must be right all the same is asked of the log, by `GET /v1/usage`.

No label holds what a client chooses freely: names are those of a closed set, or the first hundred that were seen.
"""

from collections.abc import Collection
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics

OTHER: Final = "other"
CUSTOM_TOOL: Final = "custom"
MCP_TOOL: Final = "mcp"
_FAST: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)
_MICRO: Final = 1_000_000

disable_created_metrics()  # type: ignore[no-untyped-call]
REGISTRY: Final = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

HTTP_REQUESTS: Final = Counter(
    "footplate_http_requests", "Answered requests.", ["method", "route", "status"], registry=REGISTRY
)
HTTP_SECONDS: Final = Histogram(
    "footplate_http_request_seconds",
    "From a request's arrival to the beginning of its answer.",
    ["method", "route"],
    buckets=_FAST,
    registry=REGISTRY,
)
STREAMS: Final = Gauge("footplate_streams_open", "Clients that follow a session.", registry=REGISTRY)
LOG_LAG: Final = Histogram(
    "footplate_log_lag_seconds",
    "From a commit to its publication; the oldest entry of each batch.",
    buckets=_FAST,
    registry=REGISTRY,
)

TURNS: Final = Counter("footplate_turns", "Turns that ended.", ["status", "harness"], registry=REGISTRY)
TURNS_RUNNING: Final = Gauge("footplate_turns_running", "Turns that this worker runs now.", registry=REGISTRY)
TURN_SECONDS: Final = Histogram(
    "footplate_turn_seconds",
    "From the claim of a turn's last attempt to its commit.",
    ["harness"],
    buckets=_SLOW,
    registry=REGISTRY,
)
ATTEMPTS: Final = Counter(
    "footplate_turn_attempts",
    "Turns that were taken up; again means after a lost worker, a wait or an answer.",
    ["kind", "harness"],
    registry=REGISTRY,
)
QUEUE_WAIT: Final = Histogram(
    "footplate_queue_wait_seconds",
    "From the acceptance of an input to the claim of its turn.",
    buckets=_SLOW,
    registry=REGISTRY,
)
FIRST_TOKEN: Final = Histogram(
    "footplate_time_to_first_token_seconds",
    "From the acceptance of an input to the first text of the model.",
    ["harness"],
    buckets=_SLOW,
    registry=REGISTRY,
)
MODEL_REQUESTS: Final = Counter(
    "footplate_model_requests", "Requests to models.", ["model", "outcome"], registry=REGISTRY
)
TOKENS: Final = Counter("footplate_tokens", "Tokens that were paid for.", ["kind", "model"], registry=REGISTRY)
COST: Final = Counter(
    "footplate_cost_usd", "What requests to models with a known price cost.", ["model"], registry=REGISTRY
)
TOOL_CALLS: Final = Counter("footplate_tool_calls", "Calls of tools.", ["tool", "outcome"], registry=REGISTRY)
TOOL_SECONDS: Final = Histogram(
    "footplate_tool_seconds", "How long a tool ran.", ["tool"], buckets=_SLOW, registry=REGISTRY
)
HOOKS: Final = Counter("footplate_hooks", "Hooks that were asked.", ["event", "kind", "outcome"], registry=REGISTRY)
HOOK_COUNTS: Final = Counter(
    "footplate_hook_counts", "What Python hooks count, by their own names.", ["name"], registry=REGISTRY
)
GUARDIAN_KILLS: Final = Counter(
    "footplate_guardian_kills", "Processes that a guardian had to end.", ["reason"], registry=REGISTRY
)
EXCEPTIONS: Final = Counter(
    "footplate_exceptions", "Exceptions that nobody expected, by what was going on.", ["action"], registry=REGISTRY
)


class Names:
    """Keeps a label small: the first so many names are kept as they are, later ones fold into one."""

    def __init__(self, most: int = 100) -> None:
        self._most = most
        self._seen: set[str] = set()

    def __call__(self, name: str) -> str:
        if name in self._seen:
            return name
        if len(self._seen) >= self._most:
            return OTHER
        self._seen.add(name)
        return name


MODELS: Final = Names()
HARNESSES: Final = Names()
ACTIONS: Final = Names()
COUNTED: Final = Names()


def tool_label(name: str, *, known: Collection[str]) -> str:
    return name if name in known else OTHER


def count_cost(model: str, microusd: int) -> None:
    COST.labels(model).inc(microusd / _MICRO)
