"""Events in their wire format, and sums of usage."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain.sessions import events
from footplate.domain.sessions.events import Event, Position, Usage, to_wire
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.testing import sdk_validation

MOMENT = datetime(2026, 11, 1, 10, 0, 0, 500_000, UTC)
_counts = st.integers(0, 10**9)
_usages = st.builds(Usage, _counts, _counts, _counts, _counts, _counts, st.none() | _counts)


def test_a_position_on_the_wire() -> None:
    position = Position(7, events.message("hi", event_id="sevt_1"), MOMENT, MOMENT, "turn_1")
    assert to_wire(position) == {
        "id": "sevt_1",
        "type": "agent.message",
        "content": [{"type": "text", "text": "hi"}],
        "processed_at": "2026-11-01T10:00:00.500000Z",
    }


def test_a_queued_input_has_no_processing_time() -> None:
    body = to_wire(Position(1, Event(events.USER_MESSAGE, {"content": [events.text_block("hi")]}), MOMENT, None))
    assert body["processed_at"] is None
    sdk_validation.assert_valid_event(body)


def test_a_body_cannot_override_its_processing_time() -> None:
    hostile = Event(events.AGENT_MESSAGE, {"content": [], "processed_at": "never"})
    assert to_wire(Position(1, hostile, MOMENT, MOMENT))["processed_at"] == "2026-11-01T10:00:00.500000Z"


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=2))])))
def test_every_time_is_readable_by_clients(moment: datetime) -> None:
    text = to_wire(Position(1, events.status_running(), moment, moment))["processed_at"]
    assert isinstance(text, str)
    assert datetime.fromisoformat(text) == moment


@pytest.mark.requirement("F3")
@pytest.mark.parametrize(
    ("outcome", "stop_reason"),
    [
        (TurnOutcome(status=TurnStatus.COMPLETED), {"type": "end_turn"}),
        (TurnOutcome(status=TurnStatus.INTERRUPTED), {"type": "end_turn"}),
        (TurnOutcome(status=TurnStatus.LIMIT_REACHED), {"type": "end_turn"}),
        (TurnOutcome(status=TurnStatus.FAILED), {"type": "retries_exhausted"}),
        (
            TurnOutcome(status=TurnStatus.AWAITING, pending=("sevt_1",)),
            {"type": "requires_action", "event_ids": ["sevt_1"]},
        ),
    ],
)
def test_every_outcome_has_a_stop_reason_that_is_valid_for_clients(
    outcome: TurnOutcome, stop_reason: dict[str, object]
) -> None:
    assert outcome.stop_reason == stop_reason
    sdk_validation.assert_valid_event(to_wire(Position(1, events.status_idle(outcome.stop_reason), MOMENT, MOMENT)))


@given(_usages, _usages, _usages)
def test_usage_adds_up_in_any_order(one: Usage, two: Usage, three: Usage) -> None:
    assert (one + two) + three == one + (two + three)
    assert one + two == two + one
    assert one + Usage() == one


def test_an_unknown_price_is_not_free() -> None:
    assert (Usage() + Usage()).cost_microusd is None
    assert (Usage(cost_microusd=5) + Usage()).cost_microusd == 5
