"""Wire models for the delivery of a session's work: merge, push and bundle."""

from typing import Annotated, Final

from pydantic import Field, StringConstraints

from footplate.api.wire.request_base import Body, Id, Parameters, Text
from footplate.domain.files.delivery import (
    MAX_MESSAGE_CHARACTERS,
    BranchTarget,
    Delivery,
    DeliveryRequest,
    DeliveryResult,
)
from footplate.domain.json import JsonObject
from footplate.domain.projects.project import check_branch
from footplate.domain.projects.write_leases import DEFAULT_WAIT_SECONDS

BUNDLE_MEDIA_TYPE: Final = "application/x-git-bundle"

Message = Annotated[
    Text,
    StringConstraints(min_length=1, max_length=MAX_MESSAGE_CHARACTERS),
    Field(description="Message of the commit with the agent's uncommitted changes. Default: the session's title."),
]
Wait = Annotated[
    int,
    Field(
        ge=0,
        le=int(DEFAULT_WAIT_SECONDS),
        description="Maximum number of seconds to wait while another request writes to the same branch.",
    ),
]
ProjectSelector = Annotated[Id | None, Field(description="Required if the session works on several projects.")]


class SessionMerge(Body):
    """Merges into a branch of the project's repository. Repeating the request has no further effect."""

    project_id: ProjectSelector = None
    into: Annotated[
        Id | None,
        Field(
            description="The target branch. A missing branch is created from the commit that the session started from. "
            "Default: the branch that the session started from."
        ),
    ] = None
    message: Message | None = None
    wait_seconds: Wait = int(DEFAULT_WAIT_SECONDS)


class SessionPush(Body):
    """Pushes a new branch to the project's repository. Repeating the request has no further effect."""

    project_id: ProjectSelector = None
    branch: Annotated[
        Id | None, Field(description="Name of the branch. Default: `footplate/` and the session's ID.")
    ] = None
    message: Message | None = None
    wait_seconds: Wait = int(DEFAULT_WAIT_SECONDS)


class ReadBundle(Parameters):
    project_id: ProjectSelector = None


def parse_merge(body: SessionMerge) -> tuple[DeliveryRequest, BranchTarget]:
    branch = None if body.into is None else check_branch(body.into, "into")
    return (
        DeliveryRequest(project_id=body.project_id, message=body.message),
        BranchTarget(branch=branch, wait=body.wait_seconds),
    )


def parse_push(body: SessionPush) -> tuple[DeliveryRequest, BranchTarget]:
    branch = None if body.branch is None else check_branch(body.branch)
    return (
        DeliveryRequest(project_id=body.project_id, message=body.message),
        BranchTarget(branch=branch, wait=body.wait_seconds),
    )


def serialize_delivery(request: Delivery, delivered: DeliveryResult) -> JsonObject:
    return {
        "type": "session_left",
        "session_id": request.session_id,
        "project_id": request.project.id,
        "status": delivered.status,
        "branch": delivered.branch,
        "commit": delivered.commit,
        "before": delivered.before,
    }
