"""The `parallel` harness: starts child sessions, waits for them, and takes over their files.

The call that waits for the children is in the log before they start, so a worker that continues the turn finds them.
While they run, the turn is parked and occupies no process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

from footplate.domain.errors import Permanent
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.child_sessions import ChildSessions, FileMerge
from footplate.domain.ports.harness import TurnContext
from footplate.domain.projects.allowed_directories import CONTEXT_KEY
from footplate.domain.sessions import events as ev
from footplate.domain.sessions import groups, steps
from footplate.domain.sessions.ending import EndOutcome
from footplate.domain.sessions.groups import ChildRequest, GroupResult, MemberResult
from footplate.domain.sessions.steps import Branches, ParallelSessions, StepDefinition, StepKind, WaitFor
from footplate.domain.sessions.turns import TurnOutcome, TurnStatus
from footplate.harness import turn_outcome_factories

TOOL: Final = "run_sessions"
_CHECK_STEP: Final = "check"
_MAX_NAMED: Final = 5
"""Failed sessions that the error of the step names."""


class ParallelHarness:
    opens_late: Literal[True] = True

    async def run(self, turn: TurnContext) -> TurnOutcome:
        work = turn.step.definition.parallel if turn.step is not None else None
        if work is None or turn.children is None:
            raise Permanent("The harness 'parallel' runs only parallel steps.", help_text="Choose another harness.")
        use = next((event for event in turn.turn_events if event.type == ev.AGENT_CUSTOM_TOOL_USE), None)
        if use is None:
            if turn.interrupt.is_set():
                return turn_outcome_factories.interrupted("")
            if work.branches is not Branches.NONE and turn.context.get(CONTEXT_KEY):
                return _refuse_shared_directory(work.branches)
            call_input: JsonObject = {"sessions": len(work.sessions), "max_running": work.max_running}
            use = steps.in_step(groups.waiting_call(TOOL, call_input, call_id=turn.turn_id), turn.step)
            await turn.log.append([use])
        requests = _build_requests(work, turn.content)
        picks_one = work.branches is Branches.BEST
        group = await turn.children.spawn(
            use.id, requests, max_running=work.max_running, wait_for=work.wait_for, picks_one=picks_one
        )
        result = await turn.children.wait(use.id, group.id)
        if turn.interrupt.is_set():
            so_far = result or await turn.children.find_result(group.id)
            outcome = turn_outcome_factories.interrupted(replace(so_far, picks_one=False).text if so_far else "")
            data: JsonObject = {"sessions": so_far.dump(), "group_id": group.id} if so_far else {}
            return replace(outcome, data=data)
        if result is None:
            return turn_outcome_factories.awaiting([use.id])
        result = replace(result, picks_one=picks_one)  # a group of an earlier version does not have it stored
        if work.wait_for is WaitFor.FIRST_SUCCESS:
            await turn.children.cancel(group.id)
        merges = await _merge_files(turn.children, work, result)
        return _build_outcome(result, merges)


def _refuse_shared_directory(branches: Branches) -> TurnOutcome:
    """The sessions would all change the same files, so there is nothing to merge and nothing to choose from."""
    return TurnOutcome(
        status=TurnStatus.COMPLETED,
        error_message=(
            f"A step with `branches: {branches.value}` cannot run in a directory that you named, because its sessions "
            "would change the same files. Create the session with --project or --scratch instead."
        ),
        step_failed=True,
        may_retry=False,
    )


def _build_requests(work: ParallelSessions, content: Sequence[JsonObject]) -> Sequence[ChildRequest]:
    """Returns the requests with their texts, in which references were replaced, and with the check command."""
    texts = (str(block.get("text") or "") for block in content)
    requests = [request if request.text is None else request.with_text(next(texts)) for request in work.sessions]
    if work.branches is not Branches.BEST or work.check is None:
        return requests
    check = StepDefinition(kind=StepKind.SHELL, name=_CHECK_STEP, command=work.check, ends_session=True, is_check=True)
    return [replace(request, steps=(*request.steps, check)) for request in requests]


async def _merge_files(children: ChildSessions, work: ParallelSessions, result: GroupResult) -> Mapping[str, FileMerge]:
    taken = [result.chosen] if result.chosen else result.completed
    completed = [member.session_id for member in taken]
    if work.branches is Branches.NONE or not completed:
        return {}
    return {merge.session_id: merge for merge in await children.merge_files(completed, work.branches)}


def _build_outcome(result: GroupResult, merges: Mapping[str, FileMerge]) -> TurnOutcome:
    problems = [] if result.succeeded else [_describe_failures(result)]
    sessions: list[Json] = []
    lines = [result.text]
    for member in result.members:
        merge = merges.get(member.session_id)
        sessions.append({**member.dump(), **({} if merge is None else _describe_merge(merge))})
        if merge is not None:
            lines.append(f"Files of {member.label}: {merge.state}" + "".join(f"\n  {one}" for one in merge.conflicts))
            if merge.state in {"conflict", "failed"}:
                problems.append(f"The files of {member.label} were not added: {'; '.join(merge.conflicts)}.")
    return TurnOutcome(
        status=TurnStatus.COMPLETED,
        text="\n".join(lines),
        error_message=" ".join(problems) or None,
        data={"sessions": sessions, "group_id": result.group_id},
        step_failed=bool(problems),
    )


def _describe_failures(result: GroupResult) -> str:
    """Returns how many sessions completed, and why the others did not."""
    failed = [member for member in result.members if member.outcome is not EndOutcome.COMPLETED]
    reasons = [f"{member.label}: {_describe_end(member)}" for member in failed[:_MAX_NAMED]]
    more = [f"{len(failed) - _MAX_NAMED} more did not complete."] if len(failed) > _MAX_NAMED else []
    return " ".join([result.summary, *reasons, *more])


def _describe_end(member: MemberResult) -> str:
    ended = member.outcome.value if member.outcome else "not ended"
    return (member.error or "").strip().partition("\n")[0] or f"{ended}."


def _describe_merge(merge: FileMerge) -> JsonObject:
    return {"files": merge.state, "conflicts": [*merge.conflicts]}
