"""Caches older messages of a conversation as encoded JSON, so that a model request encodes only the newest messages.

Without this cache, pydantic-ai converts all messages for every request, and the SDK encodes them again. For a thousand
turns, this takes 0.1 s with Claude and 1.3 s with OpenAI. The provider receives the same bytes with and without the
cache. If the encoding of a message depends on other messages, the whole conversation is converted for each request.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings

from footplate.harness.native.requests.model_resolver import AnyModel
from footplate.harness.native.requests.sdk_transport import MessageArray, insert_prefix, record_request, set_headers

_HEADERS_SETTING: Final = "extra_headers"
_MAX_OUTSIDE_PREFIX: Final = 8
"""How many messages each request may map again. Extending the prefix costs about as much as mapping a request."""
_INDEPENDENT_DETAILS: Final = frozenset(
    {"finish_reason", "timestamp", "service_tier", "store", "refusal", "refusal_category"}
)
"""Details of a response that do not change how other messages are mapped."""


@dataclass(frozen=True, slots=True)
class _Format:
    field: str
    instructions_first: bool = False
    """Whether the agent's instructions are items before the messages."""
    parts: tuple[type[ModelResponsePart], ...] = (TextPart, ToolCallPart, ThinkingPart)


_FORMATS: Final = {
    ("anthropic", "AnthropicModel"): _Format("messages"),
    # A thinking part changes how later messages of the chat are mapped.
    ("openai", "OpenAIChatModel"): _Format("messages", True, (TextPart, ToolCallPart)),
    ("openai", "OpenAIResponsesModel"): _Format("input"),
}
"""By provider and model class, because subclasses map differently. The clients of these providers use our transport."""


@dataclass(frozen=True, slots=True)
class RequestTemplate:
    """Everything in a model request except its messages."""

    model: AnyModel
    settings: ModelSettings
    parameters: ModelRequestParameters

    @property
    def format(self) -> _Format | None:
        if self.model.profile.get("openai_system_prompt_role") == "user":
            return None  # the instructions are then among the messages, at an unknown position
        return _FORMATS.get((self.model.system, type(self.model).__name__))

    @property
    def message_array(self) -> MessageArray:
        assert self.format is not None
        first = len(self.parameters.instruction_parts or ()) if self.format.instructions_first else 0
        return MessageArray(self.format.field, first)

    @asynccontextmanager
    async def stream(self, messages: Sequence[ModelMessage]) -> AsyncIterator[StreamedResponse]:
        settings, headers = self.settings, dict[str, str]()
        if _HEADERS_SETTING in self.model.unsupported_settings:
            headers = settings.get("extra_headers", {})
            settings = _omit(settings, frozenset({_HEADERS_SETTING}))
        request = model_request_stream(
            self.model,
            messages,
            model_settings=settings,
            model_request_parameters=self.parameters,
            instrument=False,
        )
        with set_headers(headers):
            async with request as response:
                yield response

    @property
    def for_prefix(self) -> "RequestTemplate":
        """Without the cache mark on the newest message and the headers, both of which change from turn to turn."""
        settings = _omit(self.settings, frozenset({"anthropic_cache_messages", _HEADERS_SETTING}))
        return RequestTemplate(self.model, settings, self.parameters)


def _omit(settings: ModelSettings, names: frozenset[str]) -> ModelSettings:
    kept = {key: value for key, value in cast("dict[str, Any]", settings).items() if key not in names}
    return cast("ModelSettings", kept)


class MessagePrefix:
    """The encoded older messages of one conversation. Messages are append-only, except that the last request can still
    grow until its response follows.
    """

    def __init__(self) -> None:
        self._template: RequestTemplate | None = None
        self._restart()

    def _restart(self) -> None:
        self.length = 0
        """Number of messages in the prefix."""
        self.items = b""
        self._checked = 0
        self._independent = True

    @asynccontextmanager
    async def stream(
        self, template: RequestTemplate, messages: Sequence[ModelMessage]
    ) -> AsyncIterator[StreamedResponse]:
        """Streams the model's response to the conversation's messages."""
        await self._extend(template, messages)
        with insert_prefix(template.message_array, self.items) if self.length else nullcontext():
            async with template.stream(messages[self.length :]) as response:
                yield response

    async def _extend(self, template: RequestTemplate, messages: Sequence[ModelMessage]) -> None:
        for_prefix = template.for_prefix
        if self._template != for_prefix:
            self._restart()
            self._template = for_prefix
        end = _prefix_end(messages)
        if template.format is None or not self._all_independent(template.format, messages):
            self.length, self.items = 0, b""
        elif len(messages) - self.length > _MAX_OUTSIDE_PREFIX and end > self.length:
            added = await asyncio.to_thread(encode_messages, for_prefix, messages[self.length : end])
            self.items = b",".join(filter(None, (self.items, added)))
            self.length = end

    def _all_independent(self, known: _Format, messages: Sequence[ModelMessage]) -> bool:
        """Whether each message is mapped independently. The last one may still grow, so it is checked again."""
        new = messages[self._checked :]
        self._independent = self._independent and all(_is_mapped_independently(message, known) for message in new)
        self._checked = max(len(messages) - 1, 0)
        return self._independent


def _prefix_end(messages: Sequence[ModelMessage]) -> int:
    """The end of the prefix: before the last response. Requests with a response no longer change. Keeping the last
    response outside the prefix keeps each tool result in the same part as its call.
    """
    responses = (index for index in reversed(range(len(messages))) if isinstance(messages[index], ModelResponse))
    last = next(responses, 0)
    return last if last and isinstance(messages[last - 1], ModelRequest) else 0


def _is_mapped_independently(message: ModelMessage, known: _Format) -> bool:
    if isinstance(message, ModelResponse):
        details = message.provider_details or {}
        return details.keys() <= _INDEPENDENT_DETAILS and all(type(part) in known.parts for part in message.parts)
    return message.instructions is None and message.metadata is None and all(map(_is_independent_part, message.parts))


def _is_independent_part(part: ModelRequestPart) -> bool:
    """False for a file URL: mapping may fetch it."""
    if not isinstance(part, UserPromptPart | ToolReturnPart) or type(part) not in {UserPromptPart, ToolReturnPart}:
        return False
    content = part.content if isinstance(part.content, list) else [part.content]
    return all(isinstance(item, str | BinaryContent) for item in content)


def encode_messages(template: RequestTemplate, messages: Sequence[ModelMessage]) -> bytes:
    """The messages as JSON items of the request's array. Call this in a thread without an event loop."""
    return asyncio.run(_record_items(template, messages))


async def _record_items(template: RequestTemplate, messages: Sequence[ModelMessage]) -> bytes:
    with record_request() as recording:
        try:
            async with template.stream(messages):
                pass
        except Exception:
            if recording.body is None:
                raise
    assert recording.body is not None
    return template.message_array.extract_items(recording.body)
