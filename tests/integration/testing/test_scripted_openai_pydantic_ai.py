"""pydantic-ai's two OpenAI models against the scripted model, in the shape of a real agent loop."""

import openai
import pytest
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelConnectionError, ModelRateLimitError, ModelServerError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from footplate.testing import (
    ScriptedModel,
    Step,
    cut,
    rate_limited,
    replies,
    reply,
    server_error,
    stamps,
    stop,
    text,
    thinking,
    tool,
    usage,
)

BASH = ToolDefinition(name="bash", parameters_json_schema={"type": "object", "properties": {}})
PARAMETERS = ModelRequestParameters(function_tools=[BASH])
Native = OpenAIChatModel | OpenAIResponsesModel


@pytest.fixture(params=[OpenAIChatModel, OpenAIResponsesModel])
def native(request: pytest.FixtureRequest, openai_client: openai.AsyncOpenAI) -> Native:
    made: Native = request.param("gpt-5", provider=OpenAIProvider(openai_client=openai_client))
    return made


def prompt(content: str) -> list[ModelMessage]:
    return [ModelRequest(parts=[UserPromptPart(content)])]


async def ask(native: Native, messages: list[ModelMessage]) -> ModelResponse:
    async with model_request_stream(native, messages, model_request_parameters=PARAMETERS) as stream:
        async for _ in stream:
            pass
        return stream.get()


async def test_twelve_tool_calls_and_a_final_message(model: ScriptedModel, native: Native) -> None:
    """With thinking and text before each call: a reply of several items still counts as one."""
    line = (thinking("hm"), text("next"), tool("bash", {"command": "echo {n} >> lines"}))
    model.install("lines", replies(reply(*line, repeat=12), [text("done"), usage(5, 7, cache_read=3)]))
    messages = prompt("Write. [[script:lines]]")
    commands: list[str] = []
    while True:
        response = await ask(native, messages)
        messages.append(response)
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        if not calls:
            break
        commands += [call.args_as_dict()["command"] for call in calls]
        results = [ToolReturnPart(call.tool_name, "[[script:other]]", call.tool_call_id) for call in calls]
        messages.append(ModelRequest(parts=results))
    assert commands == [f"echo {n} >> lines" for n in range(12)]
    assert response.text == "done"
    assert response.finish_reason == "stop"
    used = response.usage
    assert (used.input_tokens, used.cache_read_tokens, used.output_tokens) == (8, 3, 7)
    assert [record.n for record in model.requests("lines")] == list(range(13))


async def test_a_new_marker_starts_a_new_script(model: ScriptedModel, native: Native) -> None:
    model.install("one", replies([text("one {n}")], [text("one {n}")]))
    model.install("two", replies([text("two {n}")]))
    messages: list[ModelMessage] = []
    texts = []
    for content in ("[[script:one]]", "go on", "now [[script:two]]"):
        messages += prompt(content)
        response = await ask(native, messages)
        messages.append(response)
        texts.append(response.text)
    assert texts == ["one 0", "one 1", "two 0"]


async def test_parts_arrive_in_order(model: ScriptedModel, native: Native) -> None:
    steps: list[Step] = [
        thinking("hm"),
        text("so"),
        tool("bash", {"command": "ls"}, call_id="call_1"),
        text("and"),
        stamps(2),
    ]
    model.install("s", replies(steps))
    thought, message, call, *more = (await ask(native, prompt("[[script:s]]"))).parts
    assert isinstance(thought, ThinkingPart)
    assert thought.content == "hm"
    assert isinstance(message, TextPart)
    assert message.content == "so"
    assert isinstance(call, ToolCallPart)
    assert (call.tool_name, call.args_as_dict(), call.tool_call_id) == ("bash", {"command": "ls"}, "call_1")
    assert all(isinstance(part, TextPart) for part in more)


async def test_reasoning_goes_back_with_its_signature(model: ScriptedModel, openai_client: openai.AsyncOpenAI) -> None:
    native = OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(openai_client=openai_client))
    model.install("s", replies([thinking("hm", signature="c2ln"), text("so")], [text("on")]))
    messages = prompt("[[script:s]]")
    response = await ask(native, messages)
    assert isinstance(response.parts[0], ThinkingPart)
    assert response.parts[0].signature == "c2ln"
    await ask(native, [*messages, response, *prompt("go on")])
    body = model.requests("s")[1].body
    assert body is not None
    assert isinstance(body["input"], list)
    (sent,) = [item for item in body["input"] if isinstance(item, dict) and item.get("type") == "reasoning"]
    assert sent["encrypted_content"] == "c2ln"


async def test_not_streaming_and_default_script(native: Native) -> None:
    response = await model_request(native, prompt("hello there"))
    assert response.text == "You said: hello there"


@pytest.mark.parametrize(
    ("steps", "expected"), [([text("x"), stop("max_tokens")], "length"), ([stop("refusal")], "content_filter")]
)
async def test_finish_reasons(model: ScriptedModel, native: Native, steps: list[Step], expected: str) -> None:
    model.install("s", replies(steps))
    assert (await ask(native, prompt("[[script:s]]"))).finish_reason == expected


@pytest.mark.parametrize("before", [[], [text("part")]])
async def test_errors_reach_the_caller(model: ScriptedModel, native: Native, before: list[Step]) -> None:
    model.install("limit", replies([*before, rate_limited(3)]))
    model.install("broken", replies([*before, server_error()]))
    model.install("cut", replies([*before, cut()]))
    with pytest.raises(ModelRateLimitError) as caught:
        await ask(native, prompt("[[script:limit]]"))
    assert caught.value.retry_after == (None if before else 3)
    with pytest.raises(ModelServerError):
        await ask(native, prompt("[[script:broken]]"))
    with pytest.raises(ModelConnectionError):
        await ask(native, prompt("[[script:cut]]"))
