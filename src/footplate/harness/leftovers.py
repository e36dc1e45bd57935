"""Results and events for work that a lost attempt left unfinished, for every harness."""

from collections.abc import Sequence
from typing import Final

from footplate.domain import events as ev
from footplate.domain import threads
from footplate.domain.events import Event, Usage
from footplate.domain.json import Json

UNKNOWN: Final = (
    "The outcome of this call is unknown: the process that ran it was lost while the call was running. It may or may "
    "not have taken effect. Check before you repeat it."
)
LEFT_OPEN: Final = (
    "This call has no result: the turn ended before it finished. It may or may not have taken effect. Check before you "
    "repeat it."
)
INTERRUPTED: Final = "The user interrupted this call while it was running. It may have taken effect in part."
UNANSWERED: Final = "This call has no result: the user sent a new message instead."
STOPPED: Final = "This call has no result: the user interrupted the turn."
"""For a call of a custom tool."""


def answer_of(answer: Event) -> tuple[list[Json], bool]:
    """The client's result of a custom tool call, and whether it is an error."""
    given = answer.body.get("content")
    blocks: list[Json] = given if isinstance(given, list) and given else [ev.text_block("(no content)")]
    return blocks, bool(answer.body.get("is_error"))


def open_spans(turn_events: Sequence[Event]) -> tuple[Event, ...]:
    """The end events of model requests that were started but not ended."""
    ended = {event.body.get("model_request_start_id") for event in turn_events if event.type == ev.MODEL_REQUEST_END}
    return tuple(
        threads.beside(event, ev.model_request_end(event.id, Usage(), is_error=True))
        for event in turn_events
        if event.type == ev.MODEL_REQUEST_START and event.id not in ended
    )
