"""The official OpenAI SDK against the scripted model: every kind of step, in both APIs, streamed and whole."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessageFunctionToolCall
from openai.types.responses import Response, ResponseIncludable, ResponseStreamEvent

from footplate.testing import (
    ScriptedModel,
    Step,
    cut,
    hang,
    http_error,
    overloaded,
    rate_limited,
    replies,
    reply,
    sdk_validation,
    server_error,
    sleep,
    stamps,
    stop,
    text,
    thinking,
    tool,
    unauthorized,
    usage,
)

pytestmark = pytest.mark.timing


@dataclass
class ReceivedReply:
    """A reply of any wire format, as far as it arrived."""

    thought: str = ""
    text: str = ""
    deltas: list[tuple[str, float]] = field(default_factory=list)
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    """Id, name and arguments."""
    ended: str | None = None
    tokens: tuple[int, int, int, int] | None = None
    """Input tokens, those read from the cache, those written to the cache, and output tokens."""


Ask = Callable[..., Awaitable[ReceivedReply]]


def prompt(script: str) -> str:
    return f"Go. [[script:{script}]]"


async def chat_whole(client: openai.AsyncOpenAI, script: str = "s") -> ReceivedReply:
    completion = await client.chat.completions.create(
        model="gpt-5", messages=[{"role": "user", "content": prompt(script)}]
    )
    sdk_validation.assert_valid(ChatCompletion, completion)
    (choice,) = completion.choices
    message = choice.message
    calls = [call for call in message.tool_calls or [] if isinstance(call, ChatCompletionMessageFunctionToolCall)]
    return ReceivedReply(
        thought=getattr(message, "reasoning_content", ""),
        text=message.content or "",
        calls=[(call.id, call.function.name, call.function.arguments) for call in calls],
        ended=choice.finish_reason,
        tokens=_chat_tokens(completion),
    )


async def chat_streamed(
    client: openai.AsyncOpenAI, script: str = "s", into: ReceivedReply | None = None
) -> ReceivedReply:
    got = into or ReceivedReply()
    began = time.monotonic()
    calls: dict[int, list[str]] = {}
    async for chunk in await client.chat.completions.create(
        model="gpt-5",
        messages=[{"role": "user", "content": prompt(script)}],
        stream=True,
        stream_options={"include_usage": True},
    ):
        sdk_validation.assert_valid(ChatCompletionChunk, chunk)
        got.tokens = _chat_tokens(chunk) if chunk.usage else got.tokens
        for choice in chunk.choices:
            got.thought += getattr(choice.delta, "reasoning_content", "")
            if choice.delta.content:
                got.text += choice.delta.content
                got.deltas.append((choice.delta.content, time.monotonic() - began))
            for call in choice.delta.tool_calls or []:
                assert call.function is not None
                if call.id is not None:
                    calls[call.index] = [call.id, str(call.function.name), ""]
                calls[call.index][2] += call.function.arguments or ""
            got.ended = choice.finish_reason or got.ended
    got.calls = [(call_id, name, arguments) for call_id, name, arguments in calls.values()]
    return got


def _chat_tokens(message: ChatCompletion | ChatCompletionChunk) -> tuple[int, int, int, int]:
    used = message.usage
    assert used is not None
    assert used.prompt_tokens_details is not None
    cached, written = used.prompt_tokens_details.cached_tokens, used.prompt_tokens_details.cache_write_tokens
    assert used.total_tokens == used.prompt_tokens + used.completion_tokens
    return used.prompt_tokens, cached or 0, written or 0, used.completion_tokens


async def responses_whole(client: openai.AsyncOpenAI, script: str = "s") -> ReceivedReply:
    response = await client.responses.create(model="gpt-5", input=prompt(script))
    return _of_response(response, ReceivedReply())


async def responses_streamed(
    client: openai.AsyncOpenAI, script: str = "s", into: ReceivedReply | None = None
) -> ReceivedReply:
    got = into or ReceivedReply()
    began = time.monotonic()
    numbers = []
    async for event in await client.responses.create(model="gpt-5", input=prompt(script), stream=True):
        sdk_validation.assert_valid(ResponseStreamEvent, event)
        numbers.append(event.sequence_number)
        if event.type == "response.output_text.delta":
            got.text += event.delta
            got.deltas.append((event.delta, time.monotonic() - began))
        elif event.type == "response.reasoning_summary_text.delta":
            got.thought += event.delta
        elif event.type in {"response.completed", "response.incomplete"}:
            deltas = ReceivedReply(text=got.text, thought=got.thought)
            _of_response(event.response, got)
            assert (got.text, got.thought) == (deltas.text, deltas.thought), "the end differs from the deltas"
    assert numbers == list(range(len(numbers)))
    return got


def _of_response(response: Response, got: ReceivedReply) -> ReceivedReply:
    sdk_validation.assert_valid(Response, response)
    got.thought = "".join(part.text for item in response.output if item.type == "reasoning" for part in item.summary)
    got.text = response.output_text
    got.calls = [(i.call_id, i.name, i.arguments) for i in response.output if i.type == "function_call"]
    got.ended = response.incomplete_details.reason if response.incomplete_details else response.status
    used = response.usage
    assert used is not None
    assert used.total_tokens == used.input_tokens + used.output_tokens
    details = used.input_tokens_details
    got.tokens = (used.input_tokens, details.cached_tokens, details.cache_write_tokens, used.output_tokens)
    return got


ALL = pytest.mark.parametrize("ask", [chat_whole, chat_streamed, responses_whole, responses_streamed])
STREAMED = pytest.mark.parametrize("ask", [chat_streamed, responses_streamed])


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - the server has no event to wait for
            await asyncio.sleep(0.01)


@ALL
async def test_all_content_arrives(model: ScriptedModel, openai_client: openai.AsyncOpenAI, ask: Ask) -> None:
    script = replies(
        [
            thinking("Let me see."),
            text("Räksmörgås 🚂 and more", chunks=7),
            tool("bash", {"command": "ls '{x}'", "nested": [{"n": "{n}"}]}),
            tool("read", {"file_path": "/a" * 60}, call_id="call_given"),
            usage(11, 22, cache_read=33, cache_write=44),
        ]
    )
    model.install("s", script)
    got = await ask(openai_client)
    assert got.thought == "Let me see."
    assert got.text == "Räksmörgås 🚂 and more"
    (first_id, *first), given = got.calls
    assert first_id.startswith("call_")
    assert first == ["bash", '{"command":"ls \'{x}\'","nested":[{"n":"0"}]}']
    assert given == ("call_given", "read", '{"file_path":"' + "/a" * 60 + '"}')
    assert got.ended in {"tool_calls", "completed"}
    assert got.tokens == (88, 33, 44, 22)
    (record,) = model.requests("s")
    assert (record.outcome, record.n, record.status) == ("complete", 0, 200)


@ALL
@pytest.mark.parametrize(
    ("steps", "ended"),
    [
        ([text("x")], {"stop", "completed"}),
        ([text("x"), stop("stop_sequence")], {"stop", "completed"}),
        ([text("x"), stop("max_tokens")], {"length", "max_output_tokens"}),
        ([stop("refusal")], {"content_filter"}),
        ([], {"stop", "completed"}),
    ],
)
async def test_finish_reasons(
    model: ScriptedModel, openai_client: openai.AsyncOpenAI, ask: Ask, steps: list[Step], ended: set[str]
) -> None:
    model.install("s", replies(steps))
    assert (await ask(openai_client)).ended in ended


async def test_the_order_of_response_events(model: ScriptedModel, openai_client: openai.AsyncOpenAI) -> None:
    model.install("s", replies([thinking("hm", chunks=1), text("so", chunks=1), tool("bash")]))
    stream = await openai_client.responses.create(model="gpt-5", input=prompt("s"), stream=True)
    assert [event.type.removeprefix("response.") async for event in stream] == [
        *("created", "in_progress"),
        *("output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"),
        *("reasoning_summary_text.done", "reasoning_summary_part.done", "output_item.done"),
        *("output_item.added", "content_part.added", "output_text.delta"),
        *("output_text.done", "content_part.done", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"),
        "completed",
    ]


async def test_usage_is_in_a_chat_only_when_requested(model: ScriptedModel, openai_client: openai.AsyncOpenAI) -> None:
    model.install("s", replies([text("x")]))
    stream = await openai_client.chat.completions.create(
        model="gpt-5", messages=[{"role": "user", "content": prompt("s")}], stream=True
    )
    chunks = [chunk async for chunk in stream]
    assert all(chunk.usage is None and chunk.choices for chunk in chunks)


@pytest.mark.parametrize("include", [True, False])
async def test_reasoning_is_signed_when_requested(
    model: ScriptedModel, openai_client: openai.AsyncOpenAI, *, include: bool
) -> None:
    model.install("s", replies([thinking("hm", signature="c2ln"), text("so")]))
    included: list[ResponseIncludable] = ["reasoning.encrypted_content"] if include else []
    response = await openai_client.responses.create(model="gpt-5", input=prompt("s"), include=included)
    (item,) = [item for item in response.output if item.type == "reasoning"]
    assert item.encrypted_content == ("c2ln" if include else None)


@STREAMED
async def test_chunks_and_their_delays(model: ScriptedModel, openai_client: openai.AsyncOpenAI, ask: Ask) -> None:
    model.install("s", replies([text("abcdefghij", chunks=6, delay=0.05, start_delay=0.1)]))
    deltas = (await ask(openai_client)).deltas
    assert [part for part, _ in deltas] == ["a", "bc", "de", "f", "gh", "ij"]
    assert deltas[0][1] >= 0.1
    assert deltas[-1][1] >= 0.35
    assert min(later[1] - earlier[1] for earlier, later in itertools.pairwise(deltas)) > 0


@ALL
async def test_stamps(model: ScriptedModel, openai_client: openai.AsyncOpenAI, ask: Ask) -> None:
    model.install("s", replies([stamps(5, delay=0.02)]))
    began = time.time()
    times = [float(stamp) for stamp in (await ask(openai_client)).text.split()]
    assert len(times) == 5
    assert began - 0.001 < times[0] < times[-1] < time.time() + 0.001
    assert times[-1] - times[0] > 0.06


@ALL
async def test_sleep_delays_the_response(model: ScriptedModel, openai_client: openai.AsyncOpenAI, ask: Ask) -> None:
    model.install("s", replies([sleep(0.2), text("late")]))
    began = time.monotonic()
    assert (await ask(openai_client)).text == "late"
    assert time.monotonic() - began >= 0.2


@ALL
async def test_hang_lasts_until_the_client_disconnects(
    model: ScriptedModel, openai_client: openai.AsyncOpenAI, ask: Ask
) -> None:
    model.install("s", replies([text("part"), hang()]))
    asking = asyncio.ensure_future(ask(openai_client))
    await wait_until(lambda: len(model.requests("s")) == 1)
    await asyncio.sleep(0.1)
    assert not asking.done()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await wait_until(lambda: model.requests("s")[0].outcome != "open")
    assert model.requests("s")[0].outcome == "gone"


@ALL
async def test_cut(model: ScriptedModel, openai_client: openai.AsyncOpenAI, ask: Ask) -> None:
    model.install("s", replies([text("half a sentence", chunks=3), cut()]))
    with pytest.raises(openai.APIConnectionError):
        await ask(openai_client)
    assert model.requests("s")[0].outcome == "cut"


@STREAMED
@pytest.mark.parametrize("quiet", [False, True])
async def test_deltas_before_a_cut_arrive(
    model: ScriptedModel, openai_client: openai.AsyncOpenAI, ask: Ask, *, quiet: bool
) -> None:
    model.install("s", replies([text("half a sentence", chunks=3), cut(quiet=quiet)]))
    got = ReceivedReply()
    if quiet:
        await ask(openai_client, into=got)
    else:
        with pytest.raises(openai.APIConnectionError):
            await ask(openai_client, into=got)
    assert (got.text, len(got.deltas), got.ended, got.tokens) == ("half a sentence", 3, None, None)


@ALL
@pytest.mark.parametrize(
    ("error", "expected", "error_type", "code"),
    [
        (unauthorized(), openai.AuthenticationError, "invalid_request_error", "invalid_api_key"),
        (rate_limited(7), openai.RateLimitError, "requests", "rate_limit_exceeded"),
        (server_error(), openai.InternalServerError, "server_error", "server_error"),
        (overloaded(), openai.InternalServerError, "service_unavailable_error", "server_is_overloaded"),
        (http_error(400, message="too long"), openai.BadRequestError, "invalid_request_error", None),
        (http_error(418, error_type="teapot"), openai.APIStatusError, "teapot", "teapot"),
    ],
)
async def test_errors(
    model: ScriptedModel,
    openai_client: openai.AsyncOpenAI,
    ask: Ask,
    error: Step,
    expected: type[openai.APIStatusError],
    error_type: str,
    code: str | None,
) -> None:
    model.install("s", replies([error]))
    with pytest.raises(expected) as caught:
        await ask(openai_client)
    assert (caught.value.type, caught.value.code) == (error_type, code)
    assert caught.value.response.headers.get("retry-after") == ("7" if code == "rate_limit_exceeded" else None)
    assert caught.value.request_id == model.requests("s")[0].request_id
    assert model.requests("s")[0].outcome == "error"


async def test_an_error_after_content(model: ScriptedModel, openai_client: openai.AsyncOpenAI) -> None:
    model.install("s", replies([text("part"), rate_limited()]))
    with pytest.raises(openai.APIError, match="rate limit") as caught:
        await chat_streamed(openai_client)
    assert caught.value.code == "rate_limit_exceeded"
    stream = await openai_client.responses.create(model="gpt-5", input=prompt("s"), stream=True)
    (*_, last) = [event async for event in stream]
    sdk_validation.assert_valid(ResponseStreamEvent, last)
    assert last.type == "error"
    assert last.code == "rate_limit_exceeded"


@ALL
async def test_a_retry_overcomes_a_first_attempt(model: ScriptedModel, ask: Ask) -> None:
    model.install("s", replies(reply(text("ok"), first_attempts=[[rate_limited(0.01)], [overloaded()]])))
    async with openai.AsyncOpenAI(api_key="test", base_url=model.openai_url, max_retries=2) as client:
        assert (await ask(client)).text == "ok"
    assert [(r.attempt, r.status) for r in model.requests("s")] == [(0, 429), (1, 529), (2, 200)]


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        ("/chat/completions", {"model": "m"}, "messages"),
        ("/responses", {"model": "m"}, "input"),
        ("/responses", {"model": "m", "input": "x", "previous_response_id": "resp_1"}, "previous_response_id"),
        ("/responses", {"model": "m", "input": "[[script:nowhere]]"}, "there is no script 'nowhere'"),
    ],
)
async def test_a_request_that_cannot_be_served_is_refused(
    openai_client: openai.AsyncOpenAI, path: str, body: dict[str, str], problem: str
) -> None:
    with pytest.raises(openai.BadRequestError, match=problem):
        await openai_client.post(path, body=body, cast_to=object)
