"""Wire models of members and API keys: request bodies, list filters and responses."""

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
from footplate.domain.organisations.members import ApiKey, Member

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


class MemberCreate(Body):
    name: Name
    kind: Literal["person", "service"] = "person"
    roles: Roles = Field(default_factory=lambda: ["member"])


class MemberUpdate(Body):
    """Omitted fields keep their values."""

    roles: Roles = NOT_NULLABLE
    disabled: Annotated[bool, Field(description="The API keys of a disabled member do not work.")] = NOT_NULLABLE


class ApiKeyCreate(Body):
    name: Name
    member_id: Annotated[
        Id | None, Field(description="Owner of the key. Default: a new service account with the name of the key.")
    ] = None
    roles: Roles = Field(default_factory=lambda: ["member"])
    expires_at: Annotated[UtcTime | None, Field(strict=False)] = None


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


class ApiKeyResponse(ResponseModel):
    id: str
    type: Literal["api_key"]
    name: str
    member_id: str
    member_name: str
    roles: list[str]
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
    }


def serialize_key(key: ApiKey) -> JsonObject:
    return {
        "id": key.id,
        "type": "api_key",
        "name": key.name,
        "member_id": key.member_id,
        "member_name": key.member_name,
        "roles": [*key.roles],
        "created_at": timestamp(key.created_at),
        "created_by": key.created_by,
        "expires_at": optional_timestamp(key.expires_at),
        "revoked_at": optional_timestamp(key.revoked_at),
        "last_used_at": optional_timestamp(key.last_used_at),
    }
