"""Wire form of an audience: the fields `visibility` and `team_id` of sessions and files."""

from typing import Annotated, Literal

from pydantic import Field

from footplate.api.wire.request_base import Id
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.organisations.visibility import Audience, Visibility

VisibilityName = Annotated[
    Literal["private", "team", "organisation"],
    Field(description="Who can see it, besides its owner and administrators. `team` requires `team_id`."),
]
TeamId = Annotated[Id | None, Field(description="The team that can see it. Only with the visibility `team`.")]


def parse_audience(visibility: str, team_id: str | None) -> Audience:
    if (visibility == Visibility.TEAM) != (team_id is not None):
        raise InvalidRequest(
            "team_id: is required with the visibility `team`, and only then",
            field="team_id",
            help_text="List your teams with GET /v1/teams, or `footplate teams ls`.",
        )
    return Audience(Visibility(visibility), team_id)


def serialize_audience(audience: Audience) -> JsonObject:
    return {"visibility": audience.visibility.value, "team_id": audience.team_id}
