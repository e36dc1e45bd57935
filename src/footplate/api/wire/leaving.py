"""Wire models of delivery: merge, push and bundle of a session's work."""

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from footplate.api.wire.base import Body, Id, Parameters, Text
from footplate.domain.json import JsonObject
from footplate.domain.leases import WAIT
from footplate.domain.leaving import BranchAsked, Departure, DepartureAsked, Left
from footplate.domain.projects import branch_of

BUNDLE: Final = "application/x-git-bundle"
_LONGEST_MESSAGE: Final = 16 * 1024

Message = Annotated[
    Text,
    StringConstraints(min_length=1, max_length=_LONGEST_MESSAGE),
    Field(description="Message of the commit with the agent's uncommitted changes. Default: the session's title."),
]
Wait = Annotated[
    int, Field(ge=0, le=int(WAIT), description="Seconds to wait while another request writes to the same branch.")
]
OfProject = Annotated[Id | None, Field(description="Required if the session works on several projects.")]


class SessionMerge(Body):
    """Merges into a branch of the project's repository. Repeating the request has no further effect."""

    project_id: OfProject = None
    into: Annotated[
        Id | None, Field(description="The target branch. Default: the branch that the session started from.")
    ] = None
    message: Message | None = None
    wait_seconds: Wait = int(WAIT)


class SessionPush(Body):
    """Pushes a new branch to the project's repository. Repeating the request has no further effect."""

    project_id: OfProject = None
    branch: Annotated[
        Id | None, Field(description="Name of the branch. Default: `footplate/` and the session's id.")
    ] = None
    message: Message | None = None
    wait_seconds: Wait = int(WAIT)


class ReadBundle(Parameters):
    project_id: OfProject = None


def of_merge(body: SessionMerge) -> tuple[DepartureAsked, BranchAsked]:
    branch = None if body.into is None else branch_of(body.into, "into")
    return (
        DepartureAsked(project_id=body.project_id, message=body.message),
        BranchAsked(branch=branch, wait=body.wait_seconds),
    )


def of_push(body: SessionPush) -> tuple[DepartureAsked, BranchAsked]:
    branch = None if body.branch is None else branch_of(body.branch)
    return (
        DepartureAsked(project_id=body.project_id, message=body.message),
        BranchAsked(branch=branch, wait=body.wait_seconds),
    )


def answer(request: Departure, delivered: Left) -> JsonObject:
    return {
        "type": "session_left",
        "session_id": request.session_id,
        "project_id": request.project.id,
        "status": delivered.status,
        "branch": delivered.branch,
        "commit": delivered.commit,
        "before": delivered.before,
    }
