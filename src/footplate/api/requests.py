"""Reading requests: the body as JSON, the query string, and what the headers say about retries.

Read by hand and not by the framework: the body's bytes are needed for de-duplication, orjson is several times
faster, and unknown fields can be refused or ignored as the operator chose.
"""

import asyncio
import hashlib
import json
import math
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, TypeVar

import orjson
from fastapi import Request
from pydantic import BaseModel
from starlette.requests import HTTPConnection

from footplate.api.errors import EncodedBody, TooLarge
from footplate.api.json_limits import check_json, check_line
from footplate.api.key_quotas import BodyReservation
from footplate.api.services import ApiServices, services_of
from footplate.api.validation import validated
from footplate.api.wire.base import Body, Parameters
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject, clean_object
from footplate.domain.limits import RequestLimits, setting_of
from footplate.domain.services import Attempt

IDEMPOTENCY_KEY: Final = "idempotency-key"
RETRY_COUNT: Final = "x-stainless-retry-count"
_LARGE: Final = 16 * 1024
"""Bytes. Larger bodies are read in a thread, so that other requests are served meanwhile."""
_MAX_KEY: Final = 255
_TOLERATED: Final = frozenset({"beta"})
"""Some SDKs put `?beta=true` behind every path."""
_NUL: Final = rb"\u0000"
_SURROGATE: Final = rb"\ud"
_LONGEST_INT: Final = 20
"""Digits, with a sign, of an integer that 64 bits may hold."""
_BYTES_PER_VALUE: Final = 256
"""What a parsed and validated JSON value takes in memory, on average."""
_MAX_QUERY_FIELDS: Final = 200
_RETRIES: Final = re.compile(r"[0-9]{1,4}")

B = TypeVar("B", bound=Body)
P = TypeVar("P", bound=Parameters)


async def read_body(request: Request, model: type[B]) -> tuple[B, bytes]:
    """The validated body, and its bytes."""
    limits = services_of(request).limits
    return await _read_json(request, model, limits.json_bytes, "json_bytes")


async def read_messages(request: Request, model: type[B]) -> tuple[B, bytes]:
    """The same for a body that carries messages, which may be larger: images and documents are inside."""
    limits = services_of(request).limits
    return await _read_json(request, model, limits.message_bytes, "message_bytes")


async def _read_json(request: Request, model: type[B], limit: int, setting: str) -> tuple[B, bytes]:
    raw = await read_bytes(request, limit, setting_of(setting))
    return await validate_json(request, model, raw), raw


async def validate_json(request: Request, model: type[B], raw: bytes) -> B:
    if len(raw) <= _LARGE:
        return _parse_valid(request, model, raw)
    # Not on the event loop, where others would wait for it. One at a time, or threads would take turns with the loop.
    async with services_of(request).large_bodies:
        return await asyncio.to_thread(_parse_valid, request, model, raw)


def _parse_valid(request: Request, model: type[B], raw: bytes) -> B:
    services = services_of(request)
    reservation_of(request).add(check_json(raw, services.limits) * _BYTES_PER_VALUE)
    return _validated(model, _parse_checked(raw), services)


def reservation_of(request: Request) -> BodyReservation:
    """The memory that the request's body takes. The route releases it with the response."""
    reservation: BodyReservation = request.scope["body_reservation"]
    return reservation


async def read_bytes(request: Request, limit: int, setting: str) -> bytes:
    reservation = reservation_of(request)
    chunks = []
    async for chunk in chunks_of(request, limit, setting):
        reservation.add(len(chunk))
        chunks.append(chunk)
    return b"".join(chunks)


async def chunks_of(request: Request, limit: int, setting: str) -> AsyncIterator[bytes]:
    """The body as it comes, and no more of it than that. `setting` is what changes the limit."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise EncodedBody
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit:
        raise TooLarge(limit, setting)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise TooLarge(limit, setting)
        yield chunk


def parse_line(raw: bytes, limits: RequestLimits) -> JsonObject:
    """A line of a transcript, within the limits."""
    check_line(raw, limits)
    return _parse_checked(raw)


def _parse_checked(raw: bytes) -> JsonObject:
    """A JSON object, free of what the database refuses (NUL, lone surrogates)."""
    value = _loads(raw)
    if not isinstance(value, dict):
        raise InvalidRequest("The request body must be a JSON object.", field="body")
    return clean_object(value) if _NUL in raw or _SURROGATE in raw.lower() else value


def _loads(raw: bytes) -> Json:
    try:
        value: Json = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if _SURROGATE not in raw.lower():
            raise InvalidRequest(f"The request body is not valid JSON: {error}.", field="body") from error
        return _loads_surrogates(raw)
    return value


def _loads_surrogates(raw: bytes) -> Json:
    """Other languages write half a character as an escape; orjson refuses it, we replace it."""
    try:
        value: Json = json.loads(raw, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_number)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("The request body is not valid JSON.", field="body") from error
    return value


def _finite(digits: str) -> float:
    """As orjson has it: a number that no double holds is no number."""
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{digits[:40]} is infinity when it is read as a double")
    return value


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INT and -(1 << 63) <= int(digits) < 1 << 64 else _finite(digits)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


async def read_nothing(request: Request) -> bytes:
    """For requests that say everything by their path: no body, or an empty object."""
    services = services_of(request)
    raw = await read_bytes(request, services.limits.json_bytes, setting_of("json_bytes"))
    if raw:
        _parse_valid(request, Body, raw)
    return raw


def read_query(request: HTTPConnection, model: type[P]) -> P:
    return _validated(model, _query_fields(request, model), services_of(request))


def _query_fields(request: HTTPConnection, model: type[P]) -> dict[str, Any]:
    if not request.scope["query_string"]:
        return {}
    if request.scope["query_string"].count(b"&") >= _MAX_QUERY_FIELDS:
        raise InvalidRequest(f"The query has more than {_MAX_QUERY_FIELDS} fields.", field="query")
    lists = _list_names(model)
    fields: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        listed = name if name in lists else f"{name}[]"
        if listed in lists:
            fields.setdefault(listed, []).append(value)
        elif name in _TOLERATED:
            continue
        elif name in fields:
            raise InvalidRequest(f"{name}: is given twice", field=name)
        else:
            fields[name] = value
    return fields


def _list_names(model: type[BaseModel]) -> frozenset[str]:
    aliases = (field.alias for field in model.model_fields.values())
    return frozenset(alias for alias in aliases if alias and alias.endswith("[]"))


M = TypeVar("M", bound=BaseModel)


def _validated(model: type[M], fields: Mapping[str, Any], services: ApiServices) -> M:
    return validated(model, fields, ignore_unknown=services.ignore_unknown_fields)


def attempt_of(request: Request, raw: bytes) -> Attempt | None:
    """None when nothing tells one try of this request from another."""
    key = request.headers.get(IDEMPOTENCY_KEY)
    count = request.headers.get(RETRY_COUNT, "")
    retries = bool(_RETRIES.fullmatch(count))
    if key is None and not retries:
        return None
    if key is not None and not 0 < len(key) <= _MAX_KEY:
        raise InvalidRequest(f"Idempotency-Key: must have 1 to {_MAX_KEY} characters", field="Idempotency-Key")
    return Attempt(
        method=request.method,
        path=request.url.path,
        body_hash=hashlib.sha256(raw).digest(),
        idempotency_key=key,
        retry_count=int(count) if retries else 0,
    )
