"""Wire models of members, teams and API keys: request bodies, list filters and responses."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from footplate.api.wire.agent_and_environment_queries import PageSize
from footplate.api.wire.request_base import (
    NOT_NULLABLE,
    Body,
    Id,
    Parameters,
    Text,
    UtcTime,
    optional_timestamp,
    timestamp,
)
from footplate.api.wire.response_models import ResponseModel
from footplate.domain.json import JsonObject
from footplate.domain.organisations.members import ApiKey, Member, Team

Name = Annotated[Text, StringConstraints(min_length=1, max_length=200)]
RoleName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
Roles = Annotated[
    list[RoleName],
    Field(
        min_length=1,
        max_length=20,
        description="`viewer`, `operator`, `approver`, `member` (operator and approver), `policy_admin` or `admin`, "
        "and roles of your own, which approval rules can require.",
    ),
]


MemberIds = Annotated[list[Id], Field(max_length=1000)]


class MemberCreate(Body):
    name: Name
    kind: Literal["person", "service"] = "person"
    roles: Roles = Field(default_factory=lambda: ["member"])


class MemberUpdate(Body):
    """Omitted fields keep their values."""

    roles: Roles = NOT_NULLABLE
    disabled: Annotated[
        bool,
        Field(
            description="Disabling revokes the API keys of the member. Turns that run go on to their end, and no "
            "further turn starts in its name."
        ),
    ] = NOT_NULLABLE
    successor_id: Annotated[
        Id,
        Field(
            description="Only with `disabled`: the member who gets the sessions and files of the disabled member, and "
            "in whose name its queued messages run."
        ),
    ] = NOT_NULLABLE


class TeamCreate(Body):
    name: Name
    member_ids: MemberIds = Field(default_factory=list)


class TeamUpdate(Body):
    add_member_ids: MemberIds = Field(default_factory=list)
    remove_member_ids: MemberIds = Field(default_factory=list)


class ApiKeyCreate(Body):
    name: Name
    member_id: Annotated[
        Id | None, Field(description="Owner of the key. Default: a new service account with the name of the key.")
    ] = None
    roles: Roles = Field(default_factory=lambda: ["member"])
    expires_at: Annotated[UtcTime | None, Field(strict=False)] = None
    project_ids: Annotated[
        list[Id] | None,
        Field(
            min_length=1,
            max_length=20,
            description="Restricts the key to sessions of these projects. Default: it is not restricted.",
        ),
    ] = None


class ListTeams(Parameters):
    limit: PageSize = 20
    page: Text | None = None


class ListMembers(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    include_archived: Annotated[bool, Field(description="Include disabled members and revoked keys.")] = False


class MemberResponse(ResponseModel):
    id: str
    type: Literal["member"]
    kind: Literal["person", "service", "team"]
    name: str
    roles: list[str]
    created_at: datetime
    disabled_at: datetime | None
    successor_id: str | None
    email: Annotated[str | None, Field(description="The email that the identity provider reported.")]
    sign_in_methods: Annotated[
        list[Literal["oidc", "api_key"]],
        Field(
            description="`oidc`: the member has signed in through the identity provider, whose groups give its roles. "
            "`api_key`: it has an API key that is valid."
        ),
    ]


class TeamResponse(ResponseModel):
    id: str
    type: Literal["team"]
    name: str
    member_ids: list[str]
    created_at: datetime


class ApiKeyResponse(ResponseModel):
    id: str
    type: Literal["api_key"]
    name: str
    member_id: str
    member_name: str
    roles: list[str]
    project_ids: list[str] | None
    created_at: datetime
    created_by: str | None
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class NewApiKeyResponse(ApiKeyResponse):
    secret: str
    """The key itself. It cannot be read again."""


def serialize_member(member: Member) -> JsonObject:
    return {
        "id": member.id,
        "type": "member",
        "kind": member.kind.value,
        "name": member.name,
        "roles": [*member.roles],
        "created_at": timestamp(member.created_at),
        "disabled_at": optional_timestamp(member.disabled_at),
        "successor_id": member.successor_id,
        "email": member.email,
        "sign_in_methods": [method.value for method in member.sign_in_methods],
    }


def serialize_team(team: Team) -> JsonObject:
    return {
        "id": team.id,
        "type": "team",
        "name": team.name,
        "member_ids": [*team.member_ids],
        "created_at": timestamp(team.created_at),
    }


def serialize_key(key: ApiKey) -> JsonObject:
    return {
        "id": key.id,
        "type": "api_key",
        "name": key.name,
        "member_id": key.member_id,
        "member_name": key.member_name,
        "roles": [*key.roles],
        "project_ids": None if key.project_ids is None else [*key.project_ids],
        "created_at": timestamp(key.created_at),
        "created_by": key.created_by,
        "expires_at": optional_timestamp(key.expires_at),
        "revoked_at": optional_timestamp(key.revoked_at),
        "last_used_at": optional_timestamp(key.last_used_at),
    }
