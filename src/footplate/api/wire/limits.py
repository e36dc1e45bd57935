"""Wire models of limits: the request body and the response."""

from typing import Annotated, Literal

from pydantic import Field

from footplate.api.wire.request_base import Body, Id
from footplate.api.wire.response_models import ResponseModel
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.organisations.limits import EACH_MEMBER, MAX_VALUE, ORGANISATION, LimitUse

Name = Literal["concurrent_turns", "queued_steps", "sessions", "streams", "requests_per_second", "stored_bytes"]
Scope = Literal["organisation", "each_member", "member"]


class LimitUpdate(Body):
    name: Name
    scope: Annotated[
        Scope,
        Field(description="The organisation as a whole, each member that has no limit of its own, or one member."),
    ] = "organisation"
    member_id: Annotated[Id | None, Field(description="The member, if the scope is `member`.")] = None
    value: Annotated[Annotated[int, Field(ge=0, le=MAX_VALUE)] | None, Field(description="Null removes the limit.")]

    @property
    def stored_scope(self) -> str:
        """The scope as it is stored. Raises `InvalidRequest` for a contradiction."""
        if (self.scope == "member") != (self.member_id is not None):
            raise InvalidRequest("member_id: is required if the scope is member, and only then", field="member_id")
        return self.member_id or self.scope

    def check_value(self) -> None:
        """Refuses a limit that would lock the administrator out."""
        if self.name == "requests_per_second" and self.value == 0:
            raise InvalidRequest(
                "value: must be at least 1 for requests_per_second",
                field="value",
                help_text="To lock a member out, disable it: footplate members disable",
            )


class LimitResponse(ResponseModel):
    type: Literal["limit"]
    name: Name
    scope: Scope
    member_id: str | None
    member_name: str | None
    value: int | None
    """Null: unlimited."""
    used: float | None
    """What is used now. Null: not counted. Requests and streams are counted only while they have a limit."""
    own_value: Annotated[
        int | None,
        Field(description="What the organisation's administrators have set for exactly this scope. Null: nothing."),
    ]
    operator_value: Annotated[
        int | None,
        Field(description="The limit of the server's operator, which cannot be exceeded. Null: none. Only in lists."),
    ]


def serialize_limit(limit: LimitUse) -> JsonObject:
    is_member = limit.scope not in {ORGANISATION, EACH_MEMBER}
    return {
        "type": "limit",
        "name": limit.name.value,
        "scope": "member" if is_member else limit.scope,
        "member_id": limit.scope if is_member else None,
        "member_name": limit.member_name,
        "value": limit.value,
        "used": limit.used,
        "own_value": limit.own_value,
        "operator_value": limit.operator_value,
    }
