"""Checks a turn's trace in the collector: every span, its parent and attributes, and no conversation content."""

import secrets
from collections.abc import Callable, Sequence
from typing import Any, Final

from bench.prove.figure import require
from bench.support.clients import MODEL, Client, Event
from bench.support.cluster import Cluster
from bench.support.telemetry.telemetry_sink import Span, TelemetrySink
from footplate.domain.sessions import events
from footplate.stack.orphan_processes import wait_until
from footplate.testing import Replies, replies, text, thinking, tool, usage

ARRIVES_WITHIN: Final = 20.0
PRIVATE_TEXTS: Final = ("pomegranate", "quicksilver", "marmalade", "tangerine")
"""Words of the prompt, of a thought, of a tool's input and output, and of the response."""
_PROMPT, _THOUGHT, _OUTPUT, _RESPONSE = PRIVATE_TEXTS
_ROUTE: Final = "POST /v1/sessions/{session_id}/events"
SCRIPT: Final[Replies] = replies(
    [
        thinking(f"A {_THOUGHT}."),
        text(f"I will print a {_OUTPUT}."),
        tool("bash", {"command": f"echo {_OUTPUT}; sleep 0.05"}),
        usage(1000, 50, cache_read=200, cache_write=30),
    ],
    [tool("read", {"file_path": f"{_OUTPUT}.txt"}), usage(1100, 20)],
    [text(f"It is a {_RESPONSE}."), usage(1200, 10)],
)


class Trace:
    """The trace context of a caller, sent with its request."""

    def __init__(self) -> None:
        self.id = secrets.token_hex(16)
        self.caller = secrets.token_hex(8)

    @property
    def headers(self) -> dict[str, str]:
        return {"traceparent": f"00-{self.id}-{self.caller}-01"}


async def run_traced_turn(client: Client, session_id: str, script: str, trace: Trace) -> list[Event]:
    content = [{"type": "text", "text": f"A {_PROMPT}, please. [[script:{script}]]"}]
    async with client.stream(session_id) as stream:
        message = {"type": events.USER_MESSAGE, "content": content}
        await client.send(session_id, message, extra_headers=trace.headers)
        return await stream.until_idle()


async def wait_for_spans(
    sink: TelemetrySink, trace: Trace, complete: Callable[[Sequence[Span]], bool], what: str
) -> list[Span]:
    async def there() -> bool:
        return complete(sink.of_trace(trace.id))

    found = await wait_until(there, ARRIVES_WITHIN)
    spans = sink.of_trace(trace.id)
    require(holds=found, otherwise=f"{what} is not in the collector, which only has {[span.name for span in spans]}")
    return spans


async def check_one_turn(cluster: Cluster, client: Client, sink: TelemetrySink) -> int:
    """Runs one turn, checks all its spans, and returns their number."""
    await cluster.model.install("traced", SCRIPT)
    trace, session_id = Trace(), await client.session()
    seen = await run_traced_turn(client, session_id, "traced", trace)
    spans = await wait_for_spans(sink, trace, lambda found: len(found) >= 7, "a turn's whole trace")
    request = _find_only(spans, "server")
    _require_equal(
        "the request", (request.name, request.parent_id, request.service), (_ROUTE, trace.caller, "footplate-api")
    )
    _require_attributes(request, {"http.request.method": "POST", "http.response.status_code": 200})
    turn = _find_only(spans, "invoke_agent")
    _require_equal("the turn's parent", (turn.parent_id, turn.service), (request.span_id, "footplate-worker"))
    _require_attributes(
        turn, {"gen_ai.conversation.id": session_id, "gen_ai.request.model": MODEL, "footplate.turn.attempt": 1}
    )
    _require_attributes(
        turn, {"gen_ai.provider.name": "anthropic", "footplate.turn.status": "completed", "footplate.harness": "native"}
    )
    _requests(spans, turn, seen)
    _tools(spans, turn, seen)
    _require_equal("the number of spans", len(spans), 7)
    return len(spans)


def _requests(spans: Sequence[Span], turn: Span, seen: Sequence[Event]) -> None:
    chats = [span for span in spans if span.operation == "chat"]
    _require_equal("parents and kinds of requests", {(s.parent_id, s.kind, s.name) for s in chats}, {_under(turn)})
    used = [event["model_usage"] for event in seen if event["type"] == events.MODEL_REQUEST_END]
    _require_equal("output tokens", sorted(_out(span) for span in chats), sorted(use["output_tokens"] for use in used))
    _require_equal("input tokens", sorted(_in(span) for span in chats), sorted(_all_input(use) for use in used))
    _require_equal("the turn's tokens", (_in(turn), _out(turn)), (sum(map(_in, chats)), sum(map(_out, chats))))
    for span in chats:
        _require_attributes(
            span, {"gen_ai.provider.name": "anthropic", "gen_ai.request.model": MODEL, "gen_ai.request.stream": True}
        )
    first = [span for span in chats if "gen_ai.response.time_to_first_chunk" in span.attributes]
    require(holds=bool(first), otherwise="no request records the time to its first chunk")


def _under(turn: Span) -> tuple[str, str, str]:
    return turn.span_id, "client", f"chat {MODEL}"


def _tools(spans: Sequence[Span], turn: Span, seen: Sequence[Event]) -> None:
    tools = [span for span in spans if span.operation == "execute_tool"]
    called = {(event["name"], event["call_id"]) for event in seen if event["type"] == events.AGENT_TOOL_USE}
    names = {(s.attributes["gen_ai.tool.name"], s.attributes["gen_ai.tool.call.id"]) for s in tools}
    _require_equal("calls of tools", names, called)
    _require_equal("parents of tools", {span.parent_id for span in tools}, {turn.span_id})
    _require_equal("tools that failed", {span.name for span in tools if span.failed}, {"execute_tool read"})
    slept = next(span for span in tools if span.name == "execute_tool bash")
    require(holds=0.05 <= slept.seconds < 5, otherwise=f"the tool's span took {slept.seconds} s")


async def check_after_crash(cluster: Cluster, client: Client, sink: TelemetrySink) -> None:
    """Kills the worker during a tool call; checks that the next attempt is in the same trace with the same parent."""
    trace, session_id = Trace(), await client.session()
    (cluster.failpoints / "in_tool").write_text("kill")
    await run_traced_turn(client, session_id, "traced", trace)
    spans = await wait_for_spans(
        sink,
        trace,
        lambda found: (
            any(span.attributes.get("footplate.turn.attempt") == 2 for span in found)
            and any(span.kind == "server" for span in found)
        ),
        "the second attempt",
    )
    request = _find_only(spans, "server")
    second = next(span for span in spans if span.attributes.get("footplate.turn.attempt") == 2)
    _require_equal("the second attempt's parent", second.parent_id, request.span_id)
    below = {span.operation for span in spans if span.parent_id == second.span_id}
    _require_equal("operations below the second attempt", below, {"chat", "execute_tool"})
    for number, worker in enumerate(cluster.workers):
        if not worker.is_running:
            await cluster.restart_worker(number)


async def check_exception(
    cluster: Cluster, client: Client, sink: TelemetrySink, *, organisation: str
) -> dict[str, Any]:
    """Causes an unexpected error, a folder that cannot be created.

    Checks that the trace and Sentry have the exception, with ids and without secrets.
    """
    (cluster.directory / "data" / "workspaces").mkdir(parents=True, exist_ok=True)
    (cluster.directory / "data" / "workspaces" / organisation).write_text("not a folder")
    trace, session_id = Trace(), await client.session()
    seen = await run_traced_turn(client, session_id, "traced", trace)
    _require_equal("the stop reason", seen[-1]["stop_reason"]["type"], "retries_exhausted")
    spans = await wait_for_spans(
        sink, trace, lambda found: any("exception" in span.events for span in found), "the exception"
    )
    raised = next(span.events["exception"] for span in spans if "exception" in span.events)
    _require_equal("the exception", raised["exception.type"], "NotADirectoryError")

    async def reported() -> bool:
        return bool(sink.reports)

    require(holds=await wait_until(reported, ARRIVES_WITHIN), otherwise="Sentry received nothing")
    report = sink.reports[0]
    _require_equal("Sentry's exception", report["exception"]["values"][-1]["type"], "NotADirectoryError")
    _require_equal("Sentry's tags", (report["tags"]["action"], report["tags"]["session"]), ("turn.crashed", session_id))
    _require_equal("frames with variables", [f for f in _frames(report) if "vars" in f], [])
    return report


def require_no_private_text(sink: TelemetrySink, *own_secrets: str) -> None:
    """Requires that the telemetry contains no conversation content and no secret."""
    everything = b"".join(sink.raw)
    leaked = [private for private in (*PRIVATE_TEXTS, *own_secrets) if private.encode() in everything]
    require(holds=not leaked, otherwise=f"telemetry contains private content: {len(leaked)} words")


def _frames(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [frame for value in report["exception"]["values"] for frame in value["stacktrace"]["frames"]]


def _find_only(spans: Sequence[Span], what: str) -> Span:
    found = [span for span in spans if what in {span.kind, span.operation}]
    described = [(span.name, span.seconds, span.attributes) for span in found]
    require(holds=len(found) == 1, otherwise=f"{len(found)} spans of {what} instead of one: {described}")
    return found[0]


def _require_attributes(span: Span, wanted: dict[str, Any]) -> None:
    wrong = {name: span.attributes.get(name) for name, value in wanted.items() if span.attributes.get(name) != value}
    require(holds=not wrong, otherwise=f"{span.name} has {wrong} instead of {wanted}")


def _require_equal(what: str, found: object, expected: object) -> None:
    require(holds=found == expected, otherwise=f"{what}: {found!r} instead of {expected!r}")


def _in(span: Span) -> int:
    return int(span.attributes["gen_ai.usage.input_tokens"])


def _out(span: Span) -> int:
    return int(span.attributes["gen_ai.usage.output_tokens"])


def _all_input(use: dict[str, int]) -> int:
    return use["input_tokens"] + use["cache_read_input_tokens"] + use["cache_creation_input_tokens"]
