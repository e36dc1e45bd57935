"""Result texts and end events for tool calls and model requests that did not finish, for example because the worker was
lost. All harnesses use this module.
"""

from collections.abc import Sequence
from typing import Final

from footplate.domain.json import Json
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import threads
from footplate.domain.sessions.events import Event, Usage

UNKNOWN: Final = (
    "The outcome of this call is unknown: the process that ran it was lost while the call was running. It may or may "
    "not have taken effect. Check before you repeat it."
)
UNFINISHED: Final = (
    "This call has no result: the turn ended before it finished. It may or may not have taken effect. Check before you "
    "repeat it."
)
INTERRUPTED: Final = "The user interrupted this call while it was running. It may have taken effect in part."
NO_CLIENT_RESULT: Final = "This call has no result: the user sent a new message before the result arrived."
CLIENT_RESULT_INTERRUPTED: Final = "This call has no result: the user interrupted the turn."
"""For a call of a custom tool."""


def custom_tool_result(result_event: Event) -> tuple[list[Json], bool]:
    """The client's result of a custom tool call, and whether it is an error."""
    content = result_event.body.get("content")
    blocks: list[Json] = content if isinstance(content, list) and content else [ev.text_block("(no content)")]
    return blocks, bool(result_event.body.get("is_error"))


def end_open_requests(turn_events: Sequence[Event]) -> tuple[Event, ...]:
    """The end events of model requests that were started but not ended."""
    ended = {event.body.get("model_request_start_id") for event in turn_events if event.type == ev.MODEL_REQUEST_END}
    return tuple(
        threads.in_same_thread(event, ev.model_request_end(event.id, Usage(), is_error=True))
        for event in turn_events
        if event.type == ev.MODEL_REQUEST_START and event.id not in ended
    )
