"""Records metrics and traces of one attempt at a turn.

Metrics and traces are derived from the turn's committed events, so they work for every harness. A model request lasts
from its start event to its end event, and a tool call from its call to its result. Spans follow the GenAI conventions
of OpenTelemetry. Spans contain no text of the conversation, and no tool arguments or outputs.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog

from footplate.domain.agents import agents_and_config
from footplate.domain.agents.model_connections import find_provider
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event, Usage
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.telemetry import metrics, traces
from footplate.telemetry.traces import Attributes, Span

log = structlog.get_logger(__name__)

_KNOWN_TOOLS: Final = frozenset(agents_and_config.BUILT_IN_TOOLS)
_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "google": "gcp.gemini",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "grok": "x_ai",
    "mistral": "mistral_ai",
    "openai-chat": "openai",
    "openai-responses": "openai",
}
"""Provider names in the conventions, where they differ from the prefix of the model name."""


@dataclass(frozen=True, slots=True)
class _OpenSpan:
    """A running model request or tool call."""

    name: str
    span: Span
    started: float


class TurnTelemetry:
    def __init__(self, claim: Claim) -> None:
        self._claim = claim
        self._config = claim.config
        self._harness = metrics.HARNESS_LABELS(claim.config.harness)
        self._model = metrics.MODEL_LABELS(claim.config.model)
        self._started = time.monotonic()
        self._open: dict[str, _OpenSpan] = {}
        self._earlier_tools: dict[str, str] = {}
        """Tools that an earlier attempt called, by the id of the call's event."""
        self._has_first_token = False
        self._final_status = "lost"
        self._usage = Usage()
        self._span = traces.start_span(
            f"invoke_agent {claim.config.agent_id}", _turn_attributes(claim), parent=claim.trace
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        """Add the turn's ids to log lines, and attach exceptions to its span, inside the context."""
        claim = self._claim
        ids: dict[str, str | int] = {"session": claim.session_id, "turn": claim.turn_id, "attempt": claim.attempt}
        if claim.author is not None:
            ids["principal"] = claim.author.id
        self._record_claim()
        try:
            with structlog.contextvars.bound_contextvars(**ids), self._span.make_current():
                yield
        finally:
            self._end_spans()

    def note_earlier_calls(self, turn_events: Sequence[Event]) -> None:
        """Note the calls of earlier attempts, which this attempt may have to settle."""
        self._earlier_tools = {e.id: str(e.body.get("name")) for e in turn_events if e.type in ev.TOOL_USES}

    def record_first_token(self) -> None:
        """Record the time to the first token."""
        if self._has_first_token:
            return
        self._has_first_token = True
        if self._claim.queue_seconds is not None:
            seconds = self._claim.queue_seconds + time.monotonic() - self._started
            metrics.FIRST_TOKEN.labels(self._harness).observe(seconds)
        for request in self._open.values():
            request.span.set_attributes({"gen_ai.response.time_to_first_chunk": time.monotonic() - request.started})

    def record_events(self, events: Sequence[Event], usage: Usage | None, *, at: int) -> None:
        """Record committed events. Requests and calls that they end ended at `at`, before the write; new ones begin
        now.
        """
        if usage is not None:
            self._count_usage(usage)
        for event in events:
            match event.type:
                case ev.MODEL_REQUEST_START:
                    self._start_model_request(event)
                case ev.MODEL_REQUEST_END:
                    self._end_model_request(event, usage, at)
                case ev.AGENT_TOOL_USE | ev.AGENT_MCP_TOOL_USE:
                    self._start_tool_call(event)
                case ev.AGENT_TOOL_RESULT | ev.AGENT_MCP_TOOL_RESULT:
                    self._end_tool_call(event, at)
                case ev.AGENT_CUSTOM_TOOL_USE:
                    metrics.TOOL_CALLS.labels(metrics.CUSTOM_TOOL, "asked").inc()
                    self._span.add_event("footplate.custom_tool_asked", _tool_attributes(event))

    def record_outcome(self, outcome: TurnOutcome) -> None:
        self._final_status = outcome.status.value
        if outcome.error_type is not None:
            self._span.set_error(outcome.error_type)
        if outcome.status is not TurnStatus.AWAITING:
            seconds = time.monotonic() - self._started
            metrics.TURNS.labels(outcome.status.value, self._harness).inc()
            metrics.TURN_SECONDS.labels(self._harness).observe(seconds)
            log.info("turn ended", action="turn.ended", status=outcome.status.value, seconds=round(seconds, 3))

    def record_handover(self) -> None:
        self._final_status = "handed_over"

    def record_retry(self, error_type: str) -> None:
        self._final_status = "rescheduled"
        self._span.set_error(error_type)

    def _record_claim(self) -> None:
        metrics.TURNS_RUNNING.inc()
        if self._claim.queue_seconds is None:
            metrics.ATTEMPTS.labels("again", self._harness).inc()
        else:
            metrics.ATTEMPTS.labels("first", self._harness).inc()
            metrics.QUEUE_WAIT.observe(self._claim.queue_seconds)
        if self._claim.superseded_harness is not None:
            harness = metrics.HARNESS_LABELS(self._claim.superseded_harness)
            metrics.TURNS.labels(TurnStatus.COMPLETED.value, harness).inc()

    def _end_spans(self) -> None:
        metrics.TURNS_RUNNING.dec()
        for open_span in self._open.values():
            open_span.span.set_error("turn_over")
            open_span.span.end()
        self._open.clear()
        self._span.set_attributes({"footplate.turn.status": self._final_status, **_usage_attributes(self._usage)})
        if self._final_status == "lost":
            self._span.set_error("lost")
        self._span.end()

    def _count_usage(self, usage: Usage) -> None:
        self._usage += usage
        for kind, tokens in (
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cache_read", usage.cache_read_tokens),
            ("cache_write", usage.cache_write_tokens),
        ):
            if tokens:
                metrics.TOKENS.labels(kind, self._model).inc(tokens)
        if usage.cost_microusd:
            metrics.count_cost(self._model, usage.cost_microusd)

    def _start_model_request(self, event: Event) -> None:
        model = self._config.model
        span = self._span.start_child(f"chat {model}", _chat_attributes(self._claim), kind="client")
        self._open[event.id] = _OpenSpan(model, span, time.monotonic())

    def _end_model_request(self, event: Event, usage: Usage | None, at: int) -> None:
        is_error = bool(event.body.get("is_error"))
        metrics.MODEL_REQUESTS.labels(self._model, "error" if is_error else "ok").inc()
        request = self._open.pop(str(event.body.get("model_request_start_id")), None)
        if request is None:  # the request of a lost attempt, whose span is lost too
            return
        request.span.set_attributes(_usage_attributes(usage or Usage()))
        if is_error:
            request.span.set_error("model_request_failed")
        request.span.end(at)

    def _start_tool_call(self, event: Event) -> None:
        name = str(event.body.get("name"))
        attributes = {**_tool_attributes(event), "gen_ai.conversation.id": self._claim.session_id}
        span = self._span.start_child(f"execute_tool {name}", attributes)
        self._open[event.id] = _OpenSpan(name, span, time.monotonic())

    def _end_tool_call(self, event: Event, at: int) -> None:
        is_error = bool(event.body.get("is_error"))
        use_id = str(event.body.get("tool_use_id") or event.body.get("mcp_tool_use_id"))
        call = self._open.pop(use_id, None)
        name = call.name if call else self._earlier_tools.get(use_id, "")
        is_mcp = event.type == ev.AGENT_MCP_TOOL_RESULT
        label = metrics.MCP_TOOL if is_mcp else metrics.tool_label(name, known=_KNOWN_TOOLS)
        metrics.TOOL_CALLS.labels(label, "error" if is_error else "ok").inc()
        if call is None:
            return
        metrics.TOOL_SECONDS.labels(label).observe(time.monotonic() - call.started)
        if is_error:
            call.span.set_error("tool_error")
        call.span.end(at)


def _turn_attributes(claim: Claim) -> Attributes:
    config = claim.config
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": config.agent_id,
        "gen_ai.agent.version": str(config.agent_version),
        "gen_ai.conversation.id": claim.session_id,
        "gen_ai.provider.name": _provider_name(config.model),
        "gen_ai.request.model": config.model,
        "footplate.organisation": claim.organisation,
        **({"enduser.id": claim.author.id} if claim.author else {}),
        "footplate.harness": config.harness,
        "footplate.turn.id": claim.turn_id,
        "footplate.turn.attempt": claim.attempt,
    }


def _chat_attributes(claim: Claim) -> Attributes:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": claim.session_id,
        "gen_ai.provider.name": _provider_name(claim.config.model),
        "gen_ai.request.model": claim.config.model,
        "gen_ai.request.stream": True,
    }


def _tool_attributes(event: Event) -> Attributes:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": str(event.body.get("name")),
        "gen_ai.tool.call.id": str(event.body.get("call_id")),
        "gen_ai.tool.type": "function",
    }


def _usage_attributes(usage: Usage) -> Attributes:
    """Return the usage attributes. The conventions also count cache reads and writes as input."""
    return {
        "gen_ai.usage.input_tokens": usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
    }


def _provider_name(model: str) -> str:
    provider = find_provider(model, {})
    return _PROVIDERS.get(provider, provider)
