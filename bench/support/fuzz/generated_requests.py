"""`python -m bench.support.fuzz.generated_requests`: requests that schemathesis generates from the OpenAPI document.

The order comes as JSON on stdin, and the report goes as JSON to stdout. Every response is checked: no server error;
status, content type, headers and body as documented; deleted resources are gone, and created ones exist.

Random ids match nothing, so many are replaced by ids of existing resources. Schemathesis itself finds scenarios, such
as an agent, then a session of it, then its events.
"""

import itertools
import json
import random
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import orjson
import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.core.errors import InvalidSchema
from schemathesis.engine import Status, events, from_schema
from schemathesis.engine.recorder import ScenarioRecorder
from schemathesis.generation.case import Case
from schemathesis.hooks import HookContext

CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "use_after_free",
    "ensure_resource_availability",
    "unsupported_method",
)
_STREAMS: Final = ("GET /v1/sessions/{session_id}/events/stream", "GET /v1/events/stream")
_STREAM_SECONDS: Final = 0.3
"""Seconds after which a silent stream is closed."""
_MAX_SAMPLES: Final = 20
_MAX_GIVEN_UP: Final = 20
_REPLACED: Final = 0.8
_DELETING_OPERATIONS: Final = ("DELETE ", "/archive")
"""Operations that delete or archive. They must not hit the shared resources."""

_LINES: Final = "application/x-ndjson"

Phase = Literal["coverage", "fuzzing", "stateful"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzOrder:
    url: str
    key: str
    seed: int
    cases: int
    """The minimum number of cases. Only whole rounds are run."""
    phases: Sequence[Phase]
    examples: int
    """The number of examples per round: for each operation, or of scenarios."""
    seats: Sequence[Mapping[str, str]]


@dataclass(slots=True)
class FuzzReport:
    cases: Counter[str] = field(default_factory=Counter)
    """Cases by phase."""
    responses: Counter[str] = field(default_factory=Counter)
    """Responses by status and operation: `200 GET /v1/agents`."""
    failures: Counter[str] = field(default_factory=Counter)
    """Failures by check and operation."""
    samples: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Errors that kept schemathesis itself from testing something."""
    given_up: list[str] = field(default_factory=list)
    """Requests that schemathesis could not generate: some of the schemas that it derives ask for more than it can draw.
    """

    def add_scenario(self, phase: str, recorder: ScenarioRecorder) -> None:
        self.cases[phase] += len(recorder.interactions)
        for case_id, interaction in recorder.interactions.items():
            operation = recorder.cases[case_id].value.operation.label
            status = interaction.response.status_code if interaction.response else 0
            self.responses[f"{status} {operation}"] += 1
        for case_id, checks in recorder.checks.items():
            for check in checks:
                if check.status is Status.FAILURE and check.failure_info is not None:
                    operation = recorder.cases[case_id].value.operation.label
                    self.failures[f"{check.name}: {operation}"] += 1
                    if len(self.samples) < _MAX_SAMPLES:
                        sample = f"{check.failure_info.failure.message}\n{check.failure_info.code_sample}"
                        self.samples.append(f"{check.name}: {operation}: {sample}"[:2000])

    def by_operation(self) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for name, count in self.responses.items():
            status, operation = name.split(" ", 1)
            found.setdefault(operation, {})[status] = count
        return found

    def __add__(self, other: "FuzzReport") -> "FuzzReport":
        return FuzzReport(*(getattr(self, name) + getattr(other, name) for name in FuzzReport.__slots__))

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "FuzzReport":
        """Restores a report from its JSON."""
        fields: dict[str, Any] = {
            name: Counter(value) if isinstance(value, dict) else value for name, value in data.items()
        }
        return cls(**fields)


@schemathesis.serializer(_LINES)
def _first_line(context: Any, value: Any) -> bytes:  # noqa: ARG001 - the hook's signature
    return value if isinstance(value, bytes) else json.dumps(value, default=str).encode()


def run(order: FuzzOrder) -> FuzzReport:
    _use_existing_ids(order.seats)
    report = FuzzReport()
    for round_number in itertools.count():
        phases: Sequence[Phase] = order.phases if round_number == 0 else [p for p in order.phases if p != "coverage"]
        config = _configuration(order, phases, order.seed + round_number)
        schema = schemathesis.openapi.from_url(f"{order.url}/openapi.json", config=config)
        for event in from_schema(schema).execute():
            if isinstance(event, events.ScenarioFinished):
                report.add_scenario(event.phase.value, event.recorder)
            elif isinstance(event, events.NonFatalError):
                beyond_it = isinstance(event.value, InvalidSchema) and str(event.value).startswith("Cannot generate")
                (report.given_up if beyond_it else report.errors).append(f"{event.label}: {event.value}")
            elif isinstance(event, events.FatalError):
                raise event.exception
        if report.cases.total() >= order.cases or report.errors or len(report.given_up) > _MAX_GIVEN_UP:
            return report
    raise AssertionError("rounds do not end")


def _configuration(order: FuzzOrder, phases: Sequence[Phase], seed: int) -> SchemathesisConfig:
    every: Sequence[Phase] = ("coverage", "fuzzing", "stateful")
    return SchemathesisConfig.from_dict(
        {
            "seed": seed,
            "base-url": order.url,
            "headers": {"authorization": f"Bearer {order.key}"},
            "continue-on-failure": True,
            "max-stream-events": 1,
            "generation": {"max-examples": order.examples, "mode": "all", "database": "none"},
            "checks": {"enabled": False, **{name: {"enabled": True} for name in CHECKS}},
            "phases": {"examples": {"enabled": False}, **{name: {"enabled": name in phases} for name in every}},
            "operations": [{"include-name": name, "request-timeout": _STREAM_SECONDS} for name in _STREAMS],
        }
    )


def _use_existing_ids(seats: Sequence[Mapping[str, str]]) -> None:
    """Registers hooks that insert existing ids. The choice depends on the value alone, so that hypothesis can repeat a
    case.
    """
    shared_ids = {value for seat in seats for value in seat.values()}

    @schemathesis.hook
    def map_path_parameters(context: HookContext, path_parameters: Any) -> Any:
        label = context.operation.label if context.operation else ""
        seat = _choose(path_parameters, seats)
        if seat is None or not isinstance(path_parameters, dict) or any(mark in label for mark in _DELETING_OPERATIONS):
            return path_parameters
        return {name: seat.get(name, value) for name, value in path_parameters.items()}

    @schemathesis.hook
    def map_body(context: HookContext, body: Any) -> Any:  # noqa: ARG001 - the hook's signature
        seat = _choose(body, seats)
        if seat is None or not isinstance(body, dict):
            return body
        if "environment_id" in body:
            agent = _agent(body.get("agent"), seat["agent_id"])
            return {**body, "environment_id": seat["environment_id"], "agent": agent}
        return {**body, "events": _with_text(body["events"])} if "events" in body else body

    @schemathesis.hook
    def before_call(context: HookContext, case: Case[Any], kwargs: dict[str, Any]) -> None:  # noqa: ARG001
        """Protects the shared resources, whose ids a scenario can find in lists."""
        if any(mark in case.operation.label for mark in _DELETING_OPERATIONS):
            case.path_parameters = {
                name: "none" if value in shared_ids else value for name, value in case.path_parameters.items()
            }


def _choose(value: Any, seats: Sequence[Mapping[str, str]]) -> Mapping[str, str] | None:
    chance = random.Random(repr(value))
    return chance.choice(seats) if chance.random() < _REPLACED else None


def _agent(chosen: Any, agent_id: str) -> Any:
    """Returns the same kind of reference to an existing agent. A value that is no reference is unchanged."""
    if isinstance(chosen, str):
        return agent_id
    return {**chosen, "id": agent_id} if isinstance(chosen, dict) and "id" in chosen else chosen


def _with_text(sent: Any) -> Any:
    """Fills empty texts. Generated texts are mostly empty, and an empty message is refused at once."""
    if isinstance(sent, list):
        return [_with_text(item) for item in sent]
    if not isinstance(sent, dict):
        return sent
    if sent.get("text") == "":
        return {**sent, "text": "Hello"}
    return {**sent, "content": _with_text(sent["content"])} if "content" in sent else sent


if __name__ == "__main__":
    report = run(FuzzOrder(**orjson.loads(sys.stdin.buffer.read())))
    sys.stdout.buffer.write(orjson.dumps({name: getattr(report, name) for name in FuzzReport.__slots__}))
