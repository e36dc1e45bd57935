"""Builds one model request at start-up and discards it, so that the first turn does not wait for imports."""

from concurrent.futures import ThreadPoolExecutor

from pydantic_ai.messages import InstructionPart, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from footplate.domain.sessions.events import text_block
from footplate.harness import model_prices
from footplate.harness.native import conversation_entries
from footplate.harness.native.conversation_entries import Conversation
from footplate.harness.native.requests import encoded_message_cache, request_settings
from footplate.harness.native.requests.model_resolver import ModelResolver
from footplate.harness.native.toolset import tool_inputs


def warm_up(models: ModelResolver) -> None:
    """Builds the request. This takes some tenths of a second, so call it before the worker reports ready."""
    if (model := models.warm_up_model) is None:
        return
    call = ToolCallPart("bash", {"command": "true"}, "call_1")
    conversation = Conversation(
        [
            conversation_entries.prompt_entry("turn_1", [text_block("Hello")]),
            conversation_entries.response_entry("turn_1", ModelResponse(parts=[TextPart("Hello."), call])),
            conversation_entries.tool_return_entry("turn_1", call, [text_block("done")], is_error=False),
        ]
    )
    parameters = ModelRequestParameters(
        function_tools=[tool_inputs.tool_definition(name) for name in tool_inputs.TOOL_INPUTS],
        instruction_parts=[InstructionPart(content="Be brief.")],
    )
    template = encoded_message_cache.RequestTemplate(
        model, request_settings.model_settings(model, {}, "sesn_1"), parameters
    )
    with ThreadPoolExecutor(1) as thread:  # the caller's thread already runs an event loop
        thread.submit(encoded_message_cache.encode_messages, template, conversation.messages).result()
    model_prices.cost_microusd(model.system, model.model_name, RequestUsage())
