"""Validates API responses strictly against the models of the official Anthropic SDK.

The SDK itself does not validate responses. Here a missing field, an unknown literal or a value of the wrong type raises
`AssertionError`. Additional fields are allowed. Only this module requires the package `anthropic`.
"""

import functools
import typing
from collections.abc import Mapping
from typing import Any

from anthropic.types.beta import BetaEnvironment, BetaManagedAgentsAgent, BetaManagedAgentsSession
from anthropic.types.beta.sessions import BetaManagedAgentsStreamSessionEvents
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_json

WireObject = Mapping[str, object] | BaseModel
"""A decoded body, or an SDK object. Prefer the body: the SDK silently converts types, such as a number to a date."""


def assert_valid_event(data: WireObject) -> None:
    body = _to_wire(data)
    model = _event_models().get(str(body.get("type")))
    if model is None:
        raise AssertionError(f"the SDK has no event type {body.get('type')!r}: {body}")
    assert_valid(model, body)


def assert_valid_session(data: WireObject) -> None:
    assert_valid(BetaManagedAgentsSession, data)


def assert_valid_agent(data: WireObject) -> None:
    assert_valid(BetaManagedAgentsAgent, data)


def assert_valid_environment(data: WireObject) -> None:
    assert_valid(BetaEnvironment, data)


def assert_valid(model: Any, data: WireObject) -> None:
    """Validates data against `model`, a class of the SDK or a union of classes."""
    body = _to_wire(data)
    try:
        # JSON mode is strict about types but accepts dates as strings, as they are on the wire.
        _adapter(model).validate_json(to_json(body), strict=True)
    except ValidationError as error:
        raise AssertionError(f"{error}\nin {body}") from error


def _to_wire(data: WireObject) -> Mapping[str, object]:
    if isinstance(data, BaseModel):
        # Fields that were not sent must not appear as defaults. Wrong types are reported by the validation.
        return data.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    return data


@functools.cache
def _adapter(model: Any) -> TypeAdapter[Any]:
    return TypeAdapter(model)


@functools.cache
def _event_models() -> dict[str, type[BaseModel]]:
    union = typing.get_args(BetaManagedAgentsStreamSessionEvents)[0]
    return {
        literal: model
        for model in typing.get_args(union)
        for literal in typing.get_args(model.model_fields["type"].annotation)
    }
