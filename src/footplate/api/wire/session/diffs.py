"""Wire models of diffs: the query for a session's changed files, and the response."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from footplate.api.wire.request_base import Id, Parameters
from footplate.domain.errors import InvalidRequest
from footplate.domain.files.snapshots import (
    SCRATCH_TREE,
    ChangeState,
    DiffSummary,
    FileChange,
    TreeDiff,
    display_path,
)
from footplate.domain.json import Json, JsonObject
from footplate.domain.ports.api import DiffRequest, ForkPoint

PATCH_MEDIA_TYPE: Final = "text/x-patch"
_MAX_POSITION: Final = 2**63 - 1

Position = Annotated[int, Field(ge=0, le=_MAX_POSITION)]


class ReadDiff(Parameters):
    """Without parameters, all changes since the session started are returned."""

    turn_id: Annotated[Id | None, Field(description="Only the changes of this turn.")] = None
    from_event_id: Annotated[Id | None, Field(description="Start from the files at this event.")] = None
    from_position: Annotated[Position | None, Field(description="Position of the event, instead of its ID.")] = None
    to_event_id: Annotated[
        Id | None, Field(description="Compare with the files at this event; default: the current files.")
    ] = None
    to_position: Annotated[Position | None, Field(description="Position of the event, instead of its ID.")] = None
    project_id: Annotated[Id | None, Field(description="Only this project.")] = None
    format: Annotated[Literal["json", "patch"], Field(description="A summary, or a patch for `git apply`.")] = "json"
    state: Annotated[
        ChangeState | None,
        Field(description="Only the changes in this state, in a patch. A summary has the changes of each state."),
    ] = None


def parse_diff_request(query: ReadDiff) -> DiffRequest:
    old = _parse_point("from", query.from_event_id, query.from_position)
    new = _parse_point("to", query.to_event_id, query.to_position)
    if query.state is not None and query.format != "patch":
        raise InvalidRequest(
            "state: is only for patches, because a summary has the changes of each state",
            field="state",
            help_text="Send format=patch too, or read `states` in the summary.",
        )
    if query.turn_id is not None and (old is not None or new is not None):
        raise InvalidRequest(
            "turn_id: cannot be combined with events or positions",
            field="turn_id",
            help_text="Send either turn_id or the events to compare.",
        )
    return DiffRequest(turn_id=query.turn_id, old=old, new=new or ForkPoint(), project_id=query.project_id)


def _parse_point(name: str, event_id: str | None, position: int | None) -> ForkPoint | None:
    if event_id is None and position is None:
        return None
    if event_id is not None and position is not None:
        raise InvalidRequest(
            f"{name}_position: cannot be combined with {name}_event_id",
            field=f"{name}_position",
            help_text="Send one of the two, or neither.",
        )
    return ForkPoint(event_id=event_id, position=position)


def require_single_diff(found: Sequence[TreeDiff]) -> TreeDiff:
    """Returns the only diff. Raises `InvalidRequest` for several, because a patch covers one repository."""
    if len(found) == 1:
        return found[0]
    raise InvalidRequest(
        f"project_id: is required because the session works on {len(found)} projects and a patch covers only one",
        field="project_id",
        help_text=f"Choose one of {', '.join(diff.tree for diff in found)}.",
    )


def serialize_diff(session_id: str, found: Sequence[tuple[TreeDiff, DiffSummary]]) -> JsonObject:
    return {
        "type": "diff",
        "session_id": session_id,
        "trees": [_serialize_tree(diff, summary) for diff, summary in found],
    }


def _serialize_tree(diff: TreeDiff, summary: DiffSummary) -> JsonObject:
    omitted: list[Json] = [*(diff.new.omitted if diff.new is not None else ())]
    return {
        "project_id": None if diff.tree == SCRATCH_TREE else diff.tree,
        "name": diff.name,
        **_serialize_changes(summary.files),
        "left_out": omitted,
        "states": _serialize_states(summary),
    }


def _serialize_states(summary: DiffSummary) -> JsonObject | None:
    if summary.states is None:
        return None
    return {state: {"count": len(files), **_serialize_changes(files)} for state, files in summary.states.items()}


def _serialize_changes(changes: Sequence[FileChange]) -> JsonObject:
    return {
        "files": [_serialize_change(change) for change in changes],
        "added": sum(change.added or 0 for change in changes),
        "deleted": sum(change.deleted or 0 for change in changes),
    }


def _serialize_change(change: FileChange) -> JsonObject:
    return {
        "path": display_path(change.path),
        "old_path": None if change.old_path is None else display_path(change.old_path),
        "status": change.status,
        "added": change.added,
        "deleted": change.deleted,
        "binary": change.binary,
    }
