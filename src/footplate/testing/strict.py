"""Strict checks of what a server answers, against the official SDK's own models.

The SDK itself never complains: it builds its objects without validation. Here a required field that is missing, a
literal it does not know or a value of the wrong type is an `AssertionError`. Extra fields are allowed, as they are on
the wire. Needs `anthropic`, which the product does not: nothing else of ours imports it.
"""

import functools
import typing
from collections.abc import Mapping
from typing import Any

from anthropic.types.beta import BetaEnvironment, BetaManagedAgentsAgent, BetaManagedAgentsSession
from anthropic.types.beta.sessions import BetaManagedAgentsStreamSessionEvents
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_json

Wire = Mapping[str, object] | BaseModel
"""A decoded body, or an object that the SDK made from one. The body tells more: the SDK turns a number into a date."""


def assert_valid_event(data: Wire) -> None:
    body = _wire(data)
    model = _event_models().get(str(body.get("type")))
    if model is None:
        raise AssertionError(f"the SDK knows no event of type {body.get('type')!r}: {body}")
    assert_valid(model, body)


def assert_valid_session(data: Wire) -> None:
    assert_valid(BetaManagedAgentsSession, data)


def assert_valid_agent(data: Wire) -> None:
    assert_valid(BetaManagedAgentsAgent, data)


def assert_valid_environment(data: Wire) -> None:
    assert_valid(BetaEnvironment, data)


def assert_valid(model: Any, data: Wire) -> None:
    """`model` is a class of the SDK or a union of them."""
    body = _wire(data)
    try:
        # JSON mode: strict about types, yet a date is a string, as it is on the wire.
        _adapter(model).validate_json(to_json(body), strict=True)
    except ValidationError as error:
        raise AssertionError(f"{error}\nin {body}") from error


def _wire(data: Wire) -> Mapping[str, object]:
    if isinstance(data, BaseModel):
        # What was not sent must not come back as a default, and the SDK's wrong types are ours to report.
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
