"""pydantic-ai, the native harness's library, against the scripted model, in the shape of a real agent loop."""

import pytest
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelHTTPError
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
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.tools import ToolDefinition

from footplate.testing import ScriptedModel, cut, rate_limited, replies, reply, text, thinking, tool, usage

BASH = ToolDefinition(name="bash", parameters_json_schema={"type": "object", "properties": {}})
PARAMETERS = ModelRequestParameters(function_tools=[BASH])


async def ask(native: AnthropicModel, messages: list[ModelMessage]) -> ModelResponse:
    async with model_request_stream(native, messages, model_request_parameters=PARAMETERS) as stream:
        async for _ in stream:
            pass
        return stream.get()


async def test_twelve_tool_calls_and_a_final_message(model: ScriptedModel, native: AnthropicModel) -> None:
    line = tool("bash", {"command": "echo {n} >> lines"})
    model.install("lines", replies(reply(line, repeat=12), [text("done"), usage(5, 7)]))
    messages: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Write. [[script:lines]]")])]
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
    assert response.parts == [TextPart("done")]
    assert (response.usage.input_tokens, response.usage.output_tokens) == (5, 7)
    assert [record.n for record in model.requests("lines")] == list(range(13))


async def test_a_new_marker_starts_a_new_script(model: ScriptedModel, native: AnthropicModel) -> None:
    model.install("one", replies([text("one {n}")], [text("one {n}")]))
    model.install("two", replies([text("two {n}")]))
    messages: list[ModelMessage] = []
    texts = []
    for prompt in ("[[script:one]]", "go on", "now [[script:two]]"):
        messages.append(ModelRequest(parts=[UserPromptPart(prompt)]))
        response = await ask(native, messages)
        messages.append(response)
        texts.append(response.text)
    assert texts == ["one 0", "one 1", "two 0"]


async def test_thinking_keeps_its_signature(model: ScriptedModel, native: AnthropicModel) -> None:
    model.install("s", replies([thinking("hm", signature="c2ln"), text("so")]))
    response = await ask(native, [ModelRequest(parts=[UserPromptPart("[[script:s]]")])])
    thought, message = response.parts
    assert isinstance(thought, ThinkingPart)
    assert (thought.content, thought.signature) == ("hm", "c2ln")
    assert isinstance(message, TextPart)


async def test_not_streaming_and_default_script(native: AnthropicModel) -> None:
    response = await model_request(native, [ModelRequest(parts=[UserPromptPart("hello there")])])
    assert response.text == "You said: hello there"


async def test_rate_limit_and_cut_reach_the_caller(model: ScriptedModel, native: AnthropicModel) -> None:
    model.install("limit", replies([rate_limited(3)]))
    model.install("cut", replies([text("part"), cut()]))
    with pytest.raises(ModelHTTPError) as caught:
        await ask(native, [ModelRequest(parts=[UserPromptPart("[[script:limit]]")])])
    assert caught.value.status_code == 429
    with pytest.raises(Exception, match="incomplete chunked read"):
        await ask(native, [ModelRequest(parts=[UserPromptPart("[[script:cut]]")])])
