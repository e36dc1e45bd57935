"""Receives one streamed model response, shows previews to clients, and collects the text that will be stored.

The text is collected here so that it is still available if the stream is interrupted after clients have seen it.
"""

from pydantic_ai.messages import (
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import StreamedResponse

from footplate.domain.agents.model_connections import PROVIDERS
from footplate.domain.ports.harness import Preview, TurnLog
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.events import Event, PreviewType, Usage
from footplate.harness import model_prices
from footplate.harness.native.conversation_entries import Conversation
from footplate.harness.native.requests import provider_errors
from footplate.harness.native.requests.encoded_message_cache import RequestTemplate


class _ResponsePart:
    """The text of one response part so far, and its preview."""

    def __init__(self, event_type: PreviewType, preview: Preview) -> None:
        self._event_type = event_type
        self._preview = preview
        self._pieces: list[str] = []

    def write(self, text: str) -> None:
        self._pieces.append(text)
        self._preview.write(text)

    @property
    def is_message(self) -> bool:
        return self._event_type == "agent.message"

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def event(self) -> Event:
        make = ev.message if self.is_message else ev.thinking
        return make(self.text, event_id=self._preview.event_id)


class ResponseStream:
    def __init__(self, log: TurnLog, template: RequestTemplate) -> None:
        self._log = log
        self._template = template
        self._parts: dict[int, _ResponsePart] = {}
        self._stream: StreamedResponse | None = None

    async def receive(self, conversation: Conversation) -> ModelResponse:
        """Receives the whole response. Raises `Temporary` if the stream ended early."""
        async with conversation.prefix.stream(self._template, conversation.messages) as stream:
            self._stream = stream
            async for event in stream:
                self._handle_event(event)
        response = stream.get()
        if response.state == "incomplete" or (response.provider_name in PROVIDERS and not _has_finish_reason(response)):
            raise provider_errors.incomplete_stream_error()
        return response

    def events(self) -> list[Event]:
        """The text and thinking events in order, each with the id of its preview."""
        return [part.event() for _, part in sorted(self._parts.items())]

    def partial_response(self) -> ModelResponse | None:
        """The text received before the user interrupted. Unfinished thinking and tool calls are dropped, because a
        model cannot use them.
        """
        texts = [
            TextPart(part.text) for _, part in sorted(self._parts.items()) if part.is_message and part.text.strip()
        ]
        return ModelResponse(parts=texts) if texts else None

    @property
    def usage(self) -> Usage | None:
        """None until the provider starts to respond."""
        if self._stream is None:
            return None
        used = self._stream.usage
        is_measured = used.input_tokens > 0 or used.output_tokens > 0  # many providers report usage at the end only
        cached = used.cache_read_tokens + used.cache_write_tokens
        return Usage(
            input_tokens=max(used.input_tokens - cached, 0),
            output_tokens=used.output_tokens,
            cache_read_tokens=used.cache_read_tokens,
            cache_write_tokens=used.cache_write_tokens,
            requests=1,
            cost_microusd=model_prices.cost_microusd(self._template.model.system, self._template.model.model_name, used)
            if is_measured
            else None,
        )

    def _handle_event(self, event: ModelResponseStreamEvent) -> None:
        match event:
            case PartStartEvent(index=index, part=part):
                self._start(index, part)
            case PartDeltaEvent(index=index, delta=TextPartDelta(content_delta=text)):
                self._write(index, "agent.message", text)
            case PartDeltaEvent(index=index, delta=ThinkingPartDelta(content_delta=thought)):
                self._write(index, "agent.thinking", thought)
            case _:
                pass

    def _start(self, index: int, part: ModelResponsePart) -> None:
        match part:
            case TextPart(content=text):
                self._write(index, "agent.message", text)
            case ThinkingPart(content=thought):
                self._write(index, "agent.thinking", thought)
            case _:
                pass

    def _write(self, index: int, event_type: PreviewType, text: str | None) -> None:
        if not text:
            return
        if index not in self._parts:
            self._parts[index] = _ResponsePart(event_type, self._log.preview(event_type))
        self._parts[index].write(text)


def _has_finish_reason(response: ModelResponse) -> bool:
    """Whether the provider sent a finish reason, which is part of every complete response. The library's
    `finish_reason` does not count: it is also set when a chat stream just stops, and a truncated tool call would then
    run. A refusal has its text instead of a reason, and Gemini gives the reason why it blocked a prompt.
    """
    details = response.provider_details or {}
    return not details.keys().isdisjoint({"finish_reason", "refusal", "block_reason"})
