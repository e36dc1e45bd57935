"""Wire models of device authorizations: a program asks to sign in, a person decides, the program fetches its key."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from footplate.api.wire.request_base import Body, Text, timestamp
from footplate.api.wire.response_models import ResponseModel
from footplate.api.wire.sign_in import Secret
from footplate.domain.json import JsonObject
from footplate.domain.organisations.device_authorization import DeviceAuthorization, IssuedLoginKey


class DeviceAuthorizationCreate(Body):
    client_name: Annotated[
        Text,
        StringConstraints(min_length=1, max_length=100),
        Field(description="What the person sees, for example the name of the machine."),
    ] = "unnamed program"

    @property
    def visible_name(self) -> str:
        return "".join(character if character.isprintable() else "?" for character in self.client_name)


class DeviceTokenRequest(Body):
    device_code: Secret


class DeviceDecision(Body):
    decision: Literal["approve", "deny"]


class NewDeviceAuthorizationResponse(ResponseModel):
    type: Literal["device_authorization_started"]
    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    interval: int
    expires_in: int


class DeviceAuthorizationResponse(ResponseModel):
    type: Literal["device_authorization"]
    user_code: str
    client_name: Annotated[str, Field(description="What the program says about itself. Nobody has checked it.")]
    address: Annotated[str, Field(description="Where the program's request came from.")]
    is_same_address: Annotated[bool, Field(description="Whether the browser has the same address.")]
    status: Literal["pending", "approved", "denied", "expired"]
    created_at: datetime
    expires_at: datetime


class DeviceKeyResponse(ResponseModel):
    type: Literal["device_key"]
    api_key: str
    api_key_id: str
    member_id: str
    member_name: str
    organisation_id: str
    expires_at: datetime


def serialize_authorization(user_code: str, found: DeviceAuthorization, address: str) -> JsonObject:
    return {
        "type": "device_authorization",
        "user_code": user_code,
        "client_name": found.client_name,
        "address": found.address,
        "is_same_address": found.address == address,
        "status": found.status,
        "created_at": timestamp(found.created_at),
        "expires_at": timestamp(found.expires_at),
    }


def serialize_issued_key(issued: IssuedLoginKey) -> JsonObject:
    return {
        "type": "device_key",
        "api_key": issued.secret,
        "api_key_id": issued.key_id,
        "member_id": issued.member_id,
        "member_name": issued.member_name,
        "organisation_id": issued.organisation,
        "expires_at": timestamp(issued.expires_at),
    }
