"""Recorded histories replay on the current workflows, so an open session survives the upgrade of its worker."""

import base64
import json
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import (
    ContinueAsNewInput,
    Interceptor,
    Replayer,
    UnsandboxedWorkflowRunner,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import NondeterminismError

from footplate.engine.temporal.webhook_workflow import WebhookWorkflow
from footplate.engine.temporal.workflows import RUN_TURN, WAKE, SessionInput, SessionRef, SessionWorkflow, SweepWorkflow

pytestmark = pytest.mark.timing

HISTORIES = sorted((Path(__file__).parent / "histories").glob("v*/*.json"))
FIRST = Path(__file__).parent / "histories" / "v1"


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def _load(path: Path) -> WorkflowHistory:
    return WorkflowHistory.from_json(f"session/org_recorded/{path.stem}", path.read_text())


def _replayer(*workflows: type, interceptors: Sequence[Interceptor] = ()) -> Replayer:
    # The worker uses the same runner.
    return Replayer(workflows=workflows, workflow_runner=UnsandboxedWorkflowRunner(), interceptors=interceptors)


@pytest.mark.parametrize("path", HISTORIES, ids=_name)
async def test_a_recorded_history_replays(path: Path) -> None:
    await _replayer(SessionWorkflow, SweepWorkflow, WebhookWorkflow).replay_workflow(_load(path))


@workflow.defn(name="SessionWorkflow")
class WithoutLinger:
    @workflow.signal(name=WAKE)
    def wake(self) -> None:
        pass

    @workflow.run
    async def run(self, session: SessionInput) -> None:
        await workflow.execute_activity(
            RUN_TURN,
            SessionRef(session.organisation, session.session_id),
            start_to_close_timeout=timedelta(days=7),
            result_type=bool,
        )


@workflow.defn(name="SessionWorkflow")
class WithASecondActivity(SessionWorkflow):
    @workflow.signal(name=WAKE)
    def wake(self) -> None:
        super().wake()

    @workflow.run
    async def run(self, session: SessionInput) -> None:
        await workflow.execute_activity("prepare", start_to_close_timeout=timedelta(seconds=5))
        await super().run(session)


@workflow.defn(name="SessionWorkflow")
class WithATimerFirst(SessionWorkflow):
    @workflow.signal(name=WAKE)
    def wake(self) -> None:
        super().wake()

    @workflow.run
    async def run(self, session: SessionInput) -> None:
        await workflow.sleep(1)
        await super().run(session)


@pytest.mark.parametrize("changed", [WithoutLinger, WithASecondActivity, WithATimerFirst])
@pytest.mark.parametrize("name", ["linger-ends", "several-turns-and-wakes", "tried-again"])
async def test_a_changed_workflow_does_not_replay(changed: type, name: str) -> None:
    with pytest.raises(NondeterminismError):
        await _replayer(changed).replay_workflow(_load(FIRST / f"{name}.json"))


class ContinuedRuns(Interceptor):
    """Collects the inputs with which workflows continue as new. A replay does not compare them with the history."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002 - the library's name
        del input
        inputs = self.inputs

        class Outbound(WorkflowOutboundInterceptor):
            def continue_as_new(self, input: ContinueAsNewInput) -> NoReturn:  # noqa: A002 - the library's name
                inputs.extend(input.args)
                super().continue_as_new(input)

        class Inbound(WorkflowInboundInterceptor):
            def init(self, outbound: WorkflowOutboundInterceptor) -> None:
                super().init(Outbound(outbound))

        return Inbound


@pytest.mark.requirement("O1")
@pytest.mark.parametrize(
    ("more", "wakes", "woken"), [(True, 0, True), (False, 1, True), (False, 0, False)], ids=["more", "wake", "neither"]
)
async def test_a_wake_before_continue_as_new_reaches_the_next_run(*, more: bool, wakes: int, woken: bool) -> None:
    """A wake may arrive during the last turn before continue-as-new, or that turn may report that there is more."""
    history = json.loads((FIRST / "continued-as-new-first-run.json").read_text())
    history["events"] = _with_last_turn(history["events"], more=more, wakes=wakes)
    runs = ContinuedRuns()
    await _replayer(SessionWorkflow, interceptors=[runs]).replay_workflow(
        WorkflowHistory.from_json("session/org_recorded/sesn_continued", history)
    )
    assert [run.woken for run in runs.inputs] == [woken]


def _with_last_turn(events: list[dict[str, Any]], *, more: bool, wakes: int) -> list[dict[str, Any]]:
    """Returns a history whose last turn returns `more`, and during which the session is woken `wakes` times."""
    completed = "activityTaskCompletedEventAttributes"
    last_index = max(index for index, event in enumerate(events) if completed in event)
    result = events[last_index][completed]["result"]["payloads"][0]
    result["data"] = base64.b64encode(json.dumps(more).encode()).decode()
    (wake,) = [event for event in events if event["eventType"] == "EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED"]
    later = [_moved(event, events[last_index]["eventId"], by=wakes) for event in events[last_index:]]
    inserted = [{**wake, "eventId": str(last_index + 1 + number)} for number in range(wakes)]
    return [*events[:last_index], *inserted, *later]


def _moved(value: Any, first: str, *, by: int) -> Any:
    """Returns the event with higher ids: its own, and its references to events from `first` on."""
    if not isinstance(value, dict):
        return value
    return {
        key: str(int(item) + by)
        if key.lower().endswith("eventid") and int(item) >= int(first)
        else _moved(item, first, by=by)
        for key, item in value.items()
    }


def test_the_first_version_has_every_kind_of_history() -> None:
    """Each file contains the kind of history that its name says."""
    kinds = {path.stem: _kinds(path) for path in FIRST.glob("*.json")}
    assert kinds["one-turn-open"]["ACTIVITY_TASK_COMPLETED"] == 1
    assert kinds["one-turn-open"]["WORKFLOW_EXECUTION_COMPLETED"] == 0
    assert kinds["several-turns-and-wakes"]["ACTIVITY_TASK_COMPLETED"] >= 5
    assert kinds["several-turns-and-wakes"]["WORKFLOW_EXECUTION_SIGNALED"] >= 4
    assert kinds["linger-ends"]["TIMER_FIRED"] == kinds["linger-ends"]["WORKFLOW_EXECUTION_COMPLETED"] == 1
    assert kinds["continued-as-new-first-run"]["WORKFLOW_EXECUTION_CONTINUED_AS_NEW"] == 1
    assert kinds["continued-as-new-last-run"]["ACTIVITY_TASK_COMPLETED"] >= 1
    assert _attempts(FIRST / "tried-again.json") == [3]
    assert _attempts(FIRST / "handed-over.json") == [2]
    assert kinds["swept"]["ACTIVITY_TASK_COMPLETED"] == 1


def test_the_second_version_has_a_prepared_session() -> None:
    kinds = _kinds(FIRST.with_name("v2") / "prepared.json")
    assert (kinds["MARKER_RECORDED"], kinds["ACTIVITY_TASK_COMPLETED"]) == (2, 2)


def test_the_third_version_has_webhooks() -> None:
    retried = _kinds(FIRST.with_name("v3") / "webhooks-retried.json")
    assert (retried["TIMER_STARTED"] >= 3, retried["ACTIVITY_TASK_COMPLETED"]) == (True, 5)
    continued = _kinds(FIRST.with_name("v3") / "webhooks-continued-as-new.json")
    assert 0 < continued["ACTIVITY_TASK_COMPLETED"] < 15


@pytest.mark.parametrize("path", HISTORIES, ids=_name)
def test_a_history_contains_only_ids_and_flags(path: Path) -> None:
    assert path.stat().st_size < 100_000
    assert "stackTrace" not in path.read_text()


def _kinds(path: Path) -> Counter[str]:
    events = json.loads(path.read_text())["events"]
    return Counter(event["eventType"].removeprefix("EVENT_TYPE_") for event in events)


def _attempts(path: Path) -> list[int]:
    events = json.loads(path.read_text())["events"]
    started = "activityTaskStartedEventAttributes"
    return [event[started]["attempt"] for event in events if started in event]
