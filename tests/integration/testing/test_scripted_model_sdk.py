"""The official SDK against the scripted model: every kind of step, streamed and whole."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable

import anthropic
import pytest
from anthropic.types import Message, MessageParam, RawMessageStreamEvent
from pydantic import TypeAdapter

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

Ask = Callable[[anthropic.AsyncAnthropic], Awaitable[Message]]
EVENT = TypeAdapter[RawMessageStreamEvent](RawMessageStreamEvent)


def prompt(script: str) -> list[MessageParam]:
    return [{"role": "user", "content": f"Go. [[script:{script}]]"}]


async def whole(client: anthropic.AsyncAnthropic, script: str = "s") -> Message:
    return await client.messages.create(model="claude-sonnet-5", max_tokens=100, messages=prompt(script))


async def streamed(client: anthropic.AsyncAnthropic, script: str = "s") -> Message:
    async with client.messages.stream(model="claude-sonnet-5", max_tokens=100, messages=prompt(script)) as stream:
        return await stream.get_final_message()


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - the server has no event to wait for
            await asyncio.sleep(0.01)


ALL_BLOCKS = replies(
    [
        thinking("Let me see.", signature="abc="),
        text("Räksmörgås 🚂 and more", chunks=7),
        tool("bash", {"command": "ls '{x}'", "nested": [{"n": "{n}"}]}),
        tool("read", {"file_path": "/a"}, call_id="toolu_given"),
        usage(11, 22, cache_read=33, cache_write=44),
    ]
)


@pytest.mark.parametrize("request_message", [whole, streamed])
async def test_all_blocks_arrive(model: ScriptedModel, client: anthropic.AsyncAnthropic, request_message: Ask) -> None:
    model.install("s", ALL_BLOCKS)
    message: Message = await request_message(client)
    sdk_validation.assert_valid(Message, message)
    kinds = [block.type for block in message.content]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    thought, message_text, call, given = message.content
    assert thought.type == "thinking"
    assert (thought.thinking, thought.signature) == ("Let me see.", "abc=")
    assert message_text.type == "text"
    assert message_text.text == "Räksmörgås 🚂 and more"
    assert call.type == "tool_use"
    assert call.input == {"command": "ls '{x}'", "nested": [{"n": "0"}]}
    assert call.id.startswith("toolu_")
    assert given.type == "tool_use"
    assert given.id == "toolu_given"
    assert message.stop_reason == "tool_use"
    assert message.usage.input_tokens == 11
    assert message.usage.output_tokens == 22
    assert message.usage.cache_read_input_tokens == 33
    assert message.usage.cache_creation_input_tokens == 44


async def test_every_stream_event_is_valid(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    model.install("s", ALL_BLOCKS)
    stream = await client.messages.create(model="m", max_tokens=9, messages=prompt("s"), stream=True)
    seen = []
    async for event in stream:
        EVENT.validate_json(event.model_dump_json(exclude_unset=True), strict=True)
        seen.append(event.type)
    assert seen[0] == "message_start"
    assert seen[-2:] == ["message_delta", "message_stop"]
    assert seen.count("content_block_start") == seen.count("content_block_stop") == 4


async def test_ids_are_new_in_every_response(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    model.install("s", replies(reply(tool("bash"), tool("bash"), repeat=True)))
    first, second = await streamed(client), await streamed(client)
    calls = [block.id for message in (first, second) for block in message.content if block.type == "tool_use"]
    assert len(set(calls)) == 4
    assert first.id != second.id


async def test_chunks_and_their_delays(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    model.install("s", replies([text("abcdefghij", chunks=6, delay=0.05, start_delay=0.1)]))
    began = time.monotonic()
    async with client.messages.stream(model="m", max_tokens=9, messages=prompt("s")) as stream:
        parts = [(part, time.monotonic() - began) async for part in stream.text_stream]
    assert [part for part, _ in parts] == ["a", "bc", "de", "f", "gh", "ij"]
    assert parts[0][1] >= 0.1
    assert parts[-1][1] >= 0.35
    gaps = [later[1] - earlier[1] for earlier, later in itertools.pairwise(parts)]
    assert min(gaps) > 0


async def test_stamps_show_when_each_delta_was_sent(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    model.install("s", replies([stamps(5, delay=0.02)]))
    async with client.messages.stream(model="m", max_tokens=9, messages=prompt("s")) as stream:
        late = [time.time() - float(part) async for part in stream.text_stream]
    assert len(late) == 5
    assert all(-0.001 < seconds < 30 for seconds in late)


async def test_thousands_of_deltas_a_second(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    model.install("s", replies([text("x" * 5000, chunks=5000, delay=0.0001)]))
    stream = await client.messages.create(model="m", max_tokens=9, messages=prompt("s"), stream=True)
    deltas = [event async for event in stream if event.type == "content_block_delta"]
    assert len(deltas) == 5000
    record = model.requests("s")[0]
    assert record.ended_at is not None
    assert record.answered_at is not None
    assert record.ended_at - record.answered_at > 0.4


@pytest.mark.parametrize("request_message", [whole, streamed])
async def test_sleep_delays_the_response(
    model: ScriptedModel, client: anthropic.AsyncAnthropic, request_message: Ask
) -> None:
    model.install("s", replies([sleep(0.2), text("late"), stop("max_tokens")]))
    began = time.monotonic()
    message = await request_message(client)
    assert time.monotonic() - began >= 0.2
    assert message.stop_reason == "max_tokens"


@pytest.mark.parametrize("request_message", [whole, streamed])
@pytest.mark.parametrize("steps", [[hang()], [text("part"), hang()]])
async def test_hang_lasts_until_the_client_disconnects(
    model: ScriptedModel,
    client: anthropic.AsyncAnthropic,
    request_message: Ask,
    steps: list[Step],
) -> None:
    model.install("s", replies(steps))
    asking = asyncio.ensure_future(request_message(client))
    await wait_until(lambda: len(model.requests("s")) == 1)
    await asyncio.sleep(0.1)
    assert not asking.done()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await wait_until(lambda: model.requests("s")[0].outcome != "open")
    assert model.requests("s")[0].outcome == "gone"


async def test_closing_does_not_wait_for_a_hanging_request() -> None:
    async with ScriptedModel({"s": replies([text("part"), hang()])}) as model:
        client = anthropic.AsyncAnthropic(api_key="test", base_url=model.url, max_retries=0)
        hanging = asyncio.create_task(streamed(client))
        await wait_until(lambda: any(record.answered_at for record in model.requests("s")))
        began = time.monotonic()
    assert time.monotonic() - began < 20
    with pytest.raises(Exception, match=r"closed|incomplete"):
        await hanging
    await client.close()


async def test_cut_in_the_middle_of_a_stream(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    model.install("s", replies([text("half a sentence", chunks=3), cut()]))
    seen: list[str] = []

    async def collect() -> None:
        async for event in await client.messages.create(model="m", max_tokens=9, messages=prompt("s"), stream=True):
            seen.append(event.type)  # noqa: PERF401 - events before the cut must survive the exception

    with pytest.raises(Exception, match="incomplete chunked read"):
        await collect()
    assert seen == ["message_start", "content_block_start", *["content_block_delta"] * 3]
    assert model.requests("s")[0].outcome == "cut"


async def test_cut_of_a_response_that_is_not_streamed(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    model.install("s", replies([text("half"), cut()]))
    with pytest.raises(anthropic.APIConnectionError):
        await whole(client)


@pytest.mark.parametrize("request_message", [whole, streamed])
@pytest.mark.parametrize(
    ("error", "expected", "error_type"),
    [
        (unauthorized(), anthropic.AuthenticationError, "authentication_error"),
        (rate_limited(7), anthropic.RateLimitError, "rate_limit_error"),
        (server_error(), anthropic.InternalServerError, "api_error"),
        (overloaded(), anthropic.InternalServerError, "overloaded_error"),
        (http_error(400, message="too long"), anthropic.BadRequestError, "invalid_request_error"),
        (http_error(418, error_type="teapot"), anthropic.APIStatusError, "teapot"),
    ],
)
async def test_errors(
    model: ScriptedModel,
    client: anthropic.AsyncAnthropic,
    request_message: Ask,
    error: Step,
    expected: type[anthropic.APIStatusError],
    error_type: str,
) -> None:
    model.install("s", replies([sleep(0.01), error]))
    with pytest.raises(expected) as caught:
        await request_message(client)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == error_type
    assert caught.value.response.headers.get("retry-after") == ("7" if error_type == "rate_limit_error" else None)
    assert model.requests("s")[0].outcome == "error"


async def test_an_error_after_content_is_an_event(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    model.install("s", replies([text("part"), overloaded()]))
    with pytest.raises(anthropic.APIStatusError, match="overloaded") as caught:
        await streamed(client)
    assert caught.value.response.status_code == 200


async def test_a_retry_overcomes_a_first_attempt(model: ScriptedModel) -> None:
    model.install("s", replies(reply(text("ok"), first_attempts=[[rate_limited(0.01)], [overloaded()]])))
    async with anthropic.AsyncAnthropic(api_key="test", base_url=model.url, max_retries=2) as client:
        message = await streamed(client)
    assert message.content[0].type == "text"
    assert [(r.attempt, r.status) for r in model.requests("s")] == [(0, 429), (1, 529), (2, 200)]


async def test_count_tokens_and_models(model: ScriptedModel, client: anthropic.AsyncAnthropic) -> None:
    short = await client.messages.count_tokens(model="m", messages=prompt("s"))
    long = await client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "long " * 1000}])
    assert 0 < short.input_tokens < long.input_tokens
    names = [info.id async for info in client.models.list()]
    assert names
    assert (await client.models.retrieve(names[0])).id == names[0]
    with pytest.raises(anthropic.NotFoundError):
        await client.get("/v1/nothing", cast_to=object)


async def test_a_request_without_messages_is_refused(client: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="messages"):
        await client.post("/v1/messages", body={"model": "m"}, cast_to=object)
