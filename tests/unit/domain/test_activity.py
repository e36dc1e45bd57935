"""The activity of a session is derived from every combination of its facts."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from footplate.domain.sessions import events
from footplate.domain.sessions.activity import COUNTED_STATES, ActivityFacts, derive_activity
from footplate.domain.sessions.activity_message import ActivityDetails, describe_activity
from footplate.domain.sessions.turns import Activity, ActivityState, SessionStatus, StallReason

_IDLE = ActivityFacts(
    status=SessionStatus.IDLE,
    has_input=False,
    has_open_turn=False,
    needs_approval=False,
    holder_alive=None,
    any_worker_alive=True,
    last_turn=None,
)
_ENDED = ("completed", "failed", "interrupted", "limit_reached", "timed_out")


def _facts(**changes: Any) -> ActivityFacts:
    return replace(_IDLE, **changes)


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (_facts(), "new"),
        (_facts(has_input=True), "queued"),
        (_facts(status=SessionStatus.RUNNING, has_open_turn=True, holder_alive=True), "running"),
        (_facts(status=SessionStatus.RUNNING, has_open_turn=True), "queued"),
        (_facts(status=SessionStatus.RESCHEDULING, has_open_turn=True), "retrying"),
        (_facts(has_open_turn=True, needs_approval=True), "waiting_for_approval"),
        (_facts(has_open_turn=True, asks_question=True), "waiting_for_answer"),
        (_facts(has_open_turn=True), "waiting_for_result"),
        (_facts(has_open_turn=True, has_input=True), "queued"),
        *((_facts(last_turn=status), status) for status in _ENDED),
        (_facts(last_turn="failed", has_input=True), "queued"),
        (_facts(last_turn="completed", last_turn_succeeded=False), "failed"),
        (_facts(last_turn="interrupted", last_turn_succeeded=False), "interrupted"),
    ],
)
def test_each_state_has_its_facts(facts: ActivityFacts, state: str) -> None:
    assert derive_activity(facts)[0] == Activity(ActivityState(state))


def test_a_turn_that_waits_for_sessions_needs_no_result() -> None:
    waiting = _facts(has_open_turn=True, waits_for_sessions=True)
    assert derive_activity(waiting)[0] == Activity(ActivityState.WAITING_FOR_RESULT, StallReason.SESSIONS)


def test_a_call_of_a_running_turn_waits_for_approval() -> None:
    running = _facts(status=SessionStatus.RUNNING, has_open_turn=True, holder_alive=True, needs_approval=True)
    assert derive_activity(running)[0].state == "waiting_for_approval"


@pytest.mark.parametrize(
    ("any_worker_alive", "reason"), [(True, StallReason.WORKER_LOST), (False, StallReason.NO_WORKER)]
)
def test_a_session_of_a_lost_worker_is_stalled(reason: StallReason, *, any_worker_alive: bool) -> None:
    facts = _facts(
        status=SessionStatus.RUNNING, has_open_turn=True, holder_alive=False, any_worker_alive=any_worker_alive
    )
    assert derive_activity(facts)[0] == Activity(ActivityState.STALLED, reason)


def test_without_a_worker_only_sessions_with_work_are_stalled() -> None:
    for facts in (_facts(has_input=True), _facts(status=SessionStatus.RESCHEDULING, has_open_turn=True)):
        found, _ = derive_activity(replace(facts, any_worker_alive=False))
        assert found == Activity(ActivityState.STALLED, StallReason.NO_WORKER)
    assert derive_activity(_facts(any_worker_alive=False, has_open_turn=True))[0].state == "waiting_for_result"
    assert derive_activity(_facts(any_worker_alive=False, last_turn="completed"))[0].state == "completed"


def test_only_stalled_sessions_have_a_reason_and_sessions_with_work_are_counted() -> None:
    flags = (False, True)
    for status, has_input, has_open_turn, needs_approval, holder_alive, any_worker_alive in itertools.product(
        SessionStatus, flags, flags, flags, (None, *flags), flags
    ):
        facts = ActivityFacts(
            status=status,
            has_input=has_input,
            has_open_turn=has_open_turn,
            needs_approval=needs_approval,
            holder_alive=holder_alive,
            any_worker_alive=any_worker_alive,
            last_turn=None,
        )
        found, _ = derive_activity(facts)
        assert (found.reason is not None) is (found.state is ActivityState.STALLED)
        has_work = status is not SessionStatus.IDLE or has_input or needs_approval
        is_counted = has_work and status is not SessionStatus.TERMINATED
        assert (found.state in COUNTED_STATES) is is_counted


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        (_facts(), "done"),
        (_facts(last_turn="interrupted"), "done"),
        (_facts(last_turn="failed", has_failed=True), "failed"),
        (_facts(last_turn="failed", has_failed=True, has_input=True), "queued"),
        (_facts(has_input=True, any_worker_alive=False), "queued"),
        (_facts(author_disabled=True), "queued"),
        (_facts(status=SessionStatus.RUNNING, has_open_turn=True, holder_alive=True), "running"),
        (_facts(status=SessionStatus.RUNNING, has_open_turn=True, holder_alive=False), "queued"),
        (_facts(status=SessionStatus.RESCHEDULING, has_open_turn=True), "running"),
        (_facts(has_open_turn=True), "running"),
        (_facts(has_open_turn=True, needs_approval=True), "needs_you"),
        (_facts(has_open_turn=True, asks_question=True), "needs_you"),
        (_facts(is_paused=True), "paused"),
        (_facts(is_paused=True, paused_by_group=True), "queued"),
        (_facts(is_paused=True, paused_by_failure=True, has_failed=True), "failed"),
        (_facts(status=SessionStatus.TERMINATED), "done"),
        (_facts(status=SessionStatus.TERMINATED, has_failed=True), "failed"),
    ],
)
def test_each_activity_has_one_state(facts: ActivityFacts, state: str) -> None:
    assert derive_activity(facts)[1] == state


def test_the_message_of_a_running_session_names_the_setup_or_the_call() -> None:
    running = Activity(ActivityState.RUNNING)
    setup = ActivityDetails(event_type=events.SETUP_STARTED, call_name="app")
    assert describe_activity(running, setup) == "Runs the setup of the project app."
    call = ActivityDetails(event_type=events.AGENT_TOOL_USE, call_name="bash", call_input="make")
    assert describe_activity(running, call) == "bash: make"
    assert describe_activity(running, ActivityDetails()) == "The model is responding."
