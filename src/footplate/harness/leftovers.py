"""What a lost attempt leaves open, and the words for it. Pure, and the same for every harness."""

from collections.abc import Sequence
from typing import Final

from footplate.domain import events as ev
from footplate.domain.events import Event, Usage

UNKNOWN: Final = (
    "The outcome of this call is unknown: the process that ran it was lost while the call was running. It may or may "
    "not have taken effect. Check before you repeat it."
)
LEFT_OPEN: Final = (
    "There is no result: the turn ended before this call was finished. It may or may not have taken effect. Check "
    "before you repeat it."
)


def open_spans(turn_events: Sequence[Event]) -> tuple[Event, ...]:
    """An end for each model request that has none."""
    ended = {event.body.get("model_request_start_id") for event in turn_events if event.type == ev.MODEL_REQUEST_END}
    return tuple(
        ev.model_request_end(event.id, Usage(), is_error=True)
        for event in turn_events
        if event.type == ev.MODEL_REQUEST_START and event.id not in ended
    )
