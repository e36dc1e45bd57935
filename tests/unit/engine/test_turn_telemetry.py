"""Telemetry of a turn: metrics of committed events, and spans without any text of the conversation."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from structlog.contextvars import get_contextvars

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.organisations.principals import Author
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Usage
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.engine.turn.telemetry import TurnTelemetry
from footplate.telemetry import metrics, traces

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CLAIM = Claim(
    organisation="org_1",
    session_id="sesn_1",
    epoch=1,
    turn_id="turn_1",
    attempt=1,
    failures=0,
    first_seq=2,
    control_seq=0,
    controls_seq=1,
    config=ResolvedConfig(harness="native", model="openai-chat:gpt-5", system="Be secretive.", agent_id="agent_1"),
    content=(),
    context={},
    entries=0,
    queue_seconds=0.5,
    trace=PARENT,
    author=Author("memb_1", "Ann", "person"),
)
DONE = TurnOutcome(status=TurnStatus.COMPLETED, text="the secret answer")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(traces, "_tracer", provider.get_tracer("test"))
    yield exporter
    provider.shutdown()


def value(name: str, **labels: str) -> float:
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def run_turn(watch: TurnTelemetry) -> None:
    start = ev.model_request_start()
    use = ev.tool_use("bash", {"command": "echo the secret input"}, call_id="call_1")
    with watch.running():
        watch.record_events([start], None, at=traces.now_ns())
        watch.record_first_token()
        used = Usage(input_tokens=10, output_tokens=5, cache_read_tokens=3, requests=1, cost_microusd=250)
        end = ev.model_request_end(start.id, used, is_error=False)
        watch.record_events([ev.message("the secret text"), end], used, at=traces.now_ns())
        watch.record_events([use], None, at=traces.now_ns())
        result = ev.tool_result(use.id, [ev.text_block("the secret output")], is_error=True, call_id="call_1")
        watch.record_events([result], None, at=traces.now_ns())
        watch.record_outcome(DONE)


def test_a_turn_is_a_span_below_its_request_with_its_requests_and_tools(spans: InMemorySpanExporter) -> None:
    run_turn(TurnTelemetry(CLAIM))
    found = by_name(spans)
    turn, chat, tool = (found[name] for name in ("invoke_agent agent_1", "chat openai-chat:gpt-5", "execute_tool bash"))
    assert turn.context is not None
    assert turn.parent is not None
    assert (f"{turn.context.trace_id:032x}", f"{turn.parent.span_id:016x}") == tuple(PARENT.split("-")[1:3])
    assert [span.parent and span.parent.span_id for span in (chat, tool)] == [turn.context.span_id] * 2
    assert turn.attributes is not None
    assert turn.attributes["gen_ai.conversation.id"] == "sesn_1"
    assert turn.attributes["enduser.id"] == "memb_1"
    assert turn.attributes["gen_ai.provider.name"] == "openai"
    assert turn.attributes["gen_ai.usage.input_tokens"] == 13
    assert turn.attributes["footplate.turn.status"] == "completed"
    assert chat.attributes is not None
    assert chat.attributes["gen_ai.usage.output_tokens"] == 5
    assert tool.attributes is not None
    assert (tool.attributes["gen_ai.tool.call.id"], tool.status.is_ok) == ("call_1", False)


def test_spans_contain_no_text_of_the_conversation(spans: InMemorySpanExporter) -> None:
    run_turn(TurnTelemetry(CLAIM))
    assert len(spans.get_finished_spans()) == 3
    assert "secret" not in "".join(span.to_json() for span in spans.get_finished_spans())


@pytest.mark.requirement("F9")
def test_committed_events_are_counted() -> None:
    names = {
        "footplate_turns_total": {"status": "completed", "harness": "native"},
        "footplate_tokens_total": {"kind": "cache_read", "model": "openai-chat:gpt-5"},
        "footplate_cost_usd_total": {"model": "openai-chat:gpt-5"},
        "footplate_tool_calls_total": {"tool": "bash", "outcome": "error"},
        "footplate_model_requests_total": {"model": "openai-chat:gpt-5", "outcome": "ok"},
        "footplate_time_to_first_token_seconds_count": {"harness": "native"},
        "footplate_turn_attempts_total": {"kind": "first", "harness": "native"},
    }
    before = {name: value(name, **labels) for name, labels in names.items()}
    run_turn(TurnTelemetry(CLAIM))
    added = {name: round(value(name, **labels) - before[name], 9) for name, labels in names.items()}
    assert added == dict.fromkeys(names, 1) | {"footplate_tokens_total": 3, "footplate_cost_usd_total": 0.00025}
    assert value("footplate_turns_running") == 0


def test_a_call_of_a_lost_attempt_is_counted_under_its_name() -> None:
    use = ev.tool_use("write", {}, call_id="call_2")
    before = value("footplate_tool_calls_total", tool="write", outcome="error")
    watch = TurnTelemetry(replace(CLAIM, attempt=2, queue_seconds=None))
    with watch.running():
        watch.note_earlier_calls([use])
        watch.record_events([ev.tool_result(use.id, [], is_error=True, call_id="call_2")], None, at=traces.now_ns())
    assert value("footplate_tool_calls_total", tool="write", outcome="error") == before + 1


def test_a_superseded_turn_is_counted() -> None:
    before = value("footplate_turns_total", status="completed", harness="elsewhere")
    with TurnTelemetry(replace(CLAIM, superseded_harness="elsewhere")).running():
        pass
    assert value("footplate_turns_total", status="completed", harness="elsewhere") == before + 1


def test_a_parked_turn_has_not_ended() -> None:
    name, labels = "footplate_turns_total", {"status": "awaiting_tool_results", "harness": "native"}
    watch = TurnTelemetry(CLAIM)
    with watch.running():
        watch.record_outcome(TurnOutcome(status=TurnStatus.AWAITING, pending=("sevt_1",)))
    assert value(name, **labels) == 0


def test_a_lost_turn_has_no_open_span(spans: InMemorySpanExporter) -> None:
    watch = TurnTelemetry(CLAIM)
    with watch.running():
        watch.record_events([ev.model_request_start()], None, at=traces.now_ns())
    found = by_name(spans)
    assert len(found) == 2
    assert not any(span.status.is_ok for span in found.values())


def test_log_lines_inside_carry_the_turns_ids() -> None:
    with TurnTelemetry(CLAIM).running():
        ids = {"session": "sesn_1", "turn": "turn_1", "attempt": 1, "principal": "memb_1"}
        assert get_contextvars() | ids == get_contextvars()
    assert "turn" not in get_contextvars()
