"""Wire models of signing in: who the caller is, browser sessions, and the ways to sign in."""

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, model_validator

from footplate.api.wire.request_base import Body, Parameters, Text, optional_timestamp, timestamp
from footplate.api.wire.response_models import ResponseModel
from footplate.domain import ids
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.roles import ROLES, permissions_of
from footplate.domain.organisations.sign_in import BrowserSession, CallerProfile, csrf_token

Secret = Annotated[Text, StringConstraints(min_length=1, max_length=512)]
_ORDER: Final = sorted(ROLES, key=lambda role: len(ROLES[role]), reverse=True)


class BrowserSessionCreate(Body):
    """Exactly one of the fields."""

    api_key: Secret | None = None
    one_time_code: Secret | None = None

    @model_validator(mode="after")
    def _check_one(self) -> "BrowserSessionCreate":
        if (self.api_key is None) == (self.one_time_code is None):
            raise ValueError("send either api_key or one_time_code")
        return self


class StartOidcSignIn(Parameters):
    return_to: Annotated[Text, Field(description="The path of a page of this server.")] = "/"


class OidcCallback(Parameters):
    """The parameters of a response of the identity provider."""

    state: Text | None = None
    code: Text | None = None
    iss: Text | None = None
    error: Text | None = None


class TeamReference(ResponseModel):
    id: str
    name: str


class PrincipalResponse(ResponseModel):
    type: Literal["principal"]
    id: str
    kind: Annotated[
        Literal["member", "service", "api_key"],
        Field(description="`api_key`: a key that belongs to no member, and acts as a service account of its own."),
    ]
    name: str
    email: str | None
    role: Annotated[str | None, Field(description="The role that permits the most.")]
    roles: list[str]
    permissions: list[str]
    organisation_id: str
    teams: list[TeamReference]
    project_ids: Annotated[list[str] | None, Field(description="The projects that the API key is restricted to.")]
    api_key_id: Annotated[
        str | None, Field(description="The API key of the request, or the one that started its browser session.")
    ]
    session_id: Annotated[str | None, Field(description="The browser session of the request.")]
    csrf_token: Annotated[
        str | None, Field(description="Changes by this browser session need it in the header `x-footplate-csrf`.")
    ]
    expires_at: datetime | None


class BrowserSessionResponse(ResponseModel):
    type: Literal["browser_session"]
    id: str
    method: Literal["api_key", "one_time_code", "oidc"]
    user_agent: str
    address: str
    is_current: bool
    created_at: datetime
    last_used_at: datetime
    expires_at: datetime


class EndedBrowserSession(ResponseModel):
    type: Literal["browser_session_ended"]
    id: str
    sign_out_url: Annotated[
        str | None, Field(description="Where the browser can also sign out of the identity provider.")
    ]


class OneTimeCode(ResponseModel):
    type: Literal["one_time_code"]
    code: str
    url: str
    expires_in: int


class OidcMethod(ResponseModel):
    name: str


class SignInMethods(ResponseModel):
    type: Literal["sign_in_methods"]
    api_key: bool
    oidc: OidcMethod | None


def serialize_principal(principal: Principal, profile: CallerProfile, secret: str) -> JsonObject:
    kind = "member" if profile.kind is PrincipalKind.PERSON else "service"
    if principal.id.startswith(f"{ids.API_KEY}_"):
        kind = "api_key"
    return {
        "type": "principal",
        "id": principal.id,
        "kind": kind,
        "name": principal.name,
        "email": profile.email,
        "role": next((role for role in _ORDER if role in principal.roles), None),
        "roles": [*sorted(principal.roles)],
        "permissions": [*sorted(permission.value for permission in permissions_of(principal.roles))],
        "organisation_id": principal.organisation,
        "teams": [{"id": team_id, "name": name} for team_id, name in profile.teams],
        "project_ids": None if principal.project_ids is None else [*sorted(principal.project_ids)],
        "api_key_id": profile.key_id,
        "session_id": profile.session_id,
        "csrf_token": None if profile.session_id is None else csrf_token(secret),
        "expires_at": optional_timestamp(profile.expires_at),
    }


def serialize_session(session: BrowserSession, current: str | None) -> JsonObject:
    return {
        "type": "browser_session",
        "id": session.id,
        "method": session.method.value,
        "user_agent": session.user_agent,
        "address": session.address,
        "is_current": session.id == current,
        "created_at": timestamp(session.created_at),
        "last_used_at": timestamp(session.last_used_at),
        "expires_at": timestamp(session.expires_at),
    }
