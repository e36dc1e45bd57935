"""Reads and validates the JSON body, the query string and the retry headers of a request.

FastAPI does not read the body, for three reasons. The raw bytes are needed to recognise retries, orjson is several
times faster, and the operator chooses whether unknown fields are rejected or ignored.
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
from footplate.api.requests.json_limits import check_json, check_line
from footplate.api.requests.validation import validate
from footplate.api.service_container import ApiServices, get_services
from footplate.api.stream_and_body_quotas import BodyReservation
from footplate.api.wire.request_base import Body, Parameters
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject, clean_object
from footplate.domain.network.request_limits import RequestLimits, setting_name
from footplate.domain.ports.api import RequestAttempt

IDEMPOTENCY_KEY: Final = "idempotency-key"
RETRY_COUNT: Final = "x-stainless-retry-count"
_THREAD_THRESHOLD_BYTES: Final = 16 * 1024
"""Bytes. Larger bodies are parsed in a thread, so that other requests are served meanwhile."""
_MAX_KEY_CHARS: Final = 255
_IGNORED_QUERY_FIELDS: Final = frozenset({"beta"})
"""Some SDKs append `?beta=true` to every path."""
_NUL: Final = rb"\u0000"
_SURROGATE: Final = rb"\ud"
_MAX_INT_CHARS: Final = 20
"""Maximum number of characters, including a sign, of an integer that fits into 64 bits."""
_BYTES_PER_VALUE: Final = 256
"""Average memory of one parsed and validated JSON value."""
_MAX_QUERY_FIELDS: Final = 200
_RETRY_COUNT_PATTERN: Final = re.compile(r"[0-9]{1,4}")

B = TypeVar("B", bound=Body)
P = TypeVar("P", bound=Parameters)


async def read_body(request: Request, model: type[B]) -> tuple[B, bytes]:
    """Returns the validated body and its raw bytes."""
    limits = get_services(request).limits
    return await _read_json(request, model, limits.json_bytes, "json_bytes")


async def read_message_body(request: Request, model: type[B]) -> tuple[B, bytes]:
    """Reads a body that carries messages. Its size limit is higher, because it may contain images and documents."""
    limits = get_services(request).limits
    return await _read_json(request, model, limits.message_bytes, "message_bytes")


async def read_batch_body(request: Request, model: type[B]) -> tuple[B, bytes]:
    """Reads a body that carries many requests. It may have more JSON values than another body."""
    raw = await read_bytes(request, get_services(request).limits.message_bytes, setting_name("message_bytes"))
    return await validate_json(request, model, raw, nodes="batch_nodes"), raw


async def _read_json(request: Request, model: type[B], limit: int, setting: str) -> tuple[B, bytes]:
    raw = await read_bytes(request, limit, setting_name(setting))
    return await validate_json(request, model, raw), raw


async def validate_json(request: Request, model: type[B], raw: bytes, *, nodes: str = "json_nodes") -> B:
    """`nodes` is the limit on the number of JSON values."""
    if len(raw) <= _THREAD_THRESHOLD_BYTES:
        return _parse_and_validate(request, model, raw, nodes)
    # In a thread, so that the event loop stays free. One at a time: several threads would compete with the loop.
    async with get_services(request).large_body_semaphore:
        return await asyncio.to_thread(_parse_and_validate, request, model, raw, nodes)


async def parse_json(request: Request, raw: bytes) -> JsonObject:
    """Parses a JSON object within the limits, without a model."""
    if len(raw) <= _THREAD_THRESHOLD_BYTES:
        return _parse_checked(request, raw)
    async with get_services(request).large_body_semaphore:
        return await asyncio.to_thread(_parse_checked, request, raw)


def _parse_checked(request: Request, raw: bytes, nodes: str = "json_nodes") -> JsonObject:
    services = get_services(request)
    get_reservation(request).add(check_json(raw, services.limits, nodes) * _BYTES_PER_VALUE)
    return _parse_object(raw)


def _parse_and_validate(request: Request, model: type[B], raw: bytes, nodes: str = "json_nodes") -> B:
    return _validate(model, _parse_checked(request, raw, nodes), get_services(request))


def get_reservation(request: Request) -> BodyReservation:
    """Returns the memory reservation for the request's body. The route releases it after the response."""
    reservation: BodyReservation = request.scope["body_reservation"]
    return reservation


async def read_bytes(request: Request, limit: int, setting: str) -> bytes:
    reservation = get_reservation(request)
    chunks = []
    async for chunk in read_chunks(request, limit, setting):
        reservation.add(len(chunk))
        chunks.append(chunk)
    return b"".join(chunks)


async def read_chunks(request: Request, limit: int, setting: str) -> AsyncIterator[bytes]:
    """Yields the body as it arrives, up to `limit` bytes. `setting` names the setting that changes the limit."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise EncodedBody
    declared_length = request.headers.get("content-length", "")
    if declared_length.isdecimal() and int(declared_length) > limit:
        raise TooLarge(limit, setting)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise TooLarge(limit, setting)
        yield chunk


def parse_line(raw: bytes, limits: RequestLimits) -> JsonObject:
    """Parses one line of a transcript, within the limits."""
    check_line(raw, limits)
    return _parse_object(raw)


def _parse_object(raw: bytes) -> JsonObject:
    """Parses a JSON object and removes characters that the database refuses (NUL, lone surrogates)."""
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
    """Parses JSON with lone surrogates in escapes, which some languages write and orjson refuses. They are replaced
    later.
    """
    try:
        value: Json = json.loads(
            raw, parse_constant=_refuse_constant, parse_float=_parse_finite, parse_int=_parse_integer
        )
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("The request body is not valid JSON.", field="body") from error
    return value


def _parse_finite(digits: str) -> float:
    """Refuses a number that overflows a double, as orjson does."""
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:40]} is too large for a double")
    return value


def _parse_integer(digits: str) -> int | float:
    return (
        int(digits) if len(digits) <= _MAX_INT_CHARS and -(1 << 63) <= int(digits) < 1 << 64 else _parse_finite(digits)
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


async def read_empty_body(request: Request) -> bytes:
    """Reads the body of a request that takes none. It may be empty or an empty object."""
    services = get_services(request)
    raw = await read_bytes(request, services.limits.json_bytes, setting_name("json_bytes"))
    if raw:
        _parse_and_validate(request, Body, raw)
    return raw


def read_query(request: HTTPConnection, model: type[P]) -> P:
    return _validate(model, _query_fields(request, model), get_services(request))


def _query_fields(request: HTTPConnection, model: type[P]) -> dict[str, Any]:
    if not request.scope["query_string"]:
        return {}
    if request.scope["query_string"].count(b"&") >= _MAX_QUERY_FIELDS:
        raise InvalidRequest(f"The query has more than {_MAX_QUERY_FIELDS} fields.", field="query")
    lists = _list_names(model)
    fields: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        list_name = name if name in lists else f"{name}[]"
        if list_name in lists:
            fields.setdefault(list_name, []).append(value)
        elif name in _IGNORED_QUERY_FIELDS:
            continue
        elif name in fields:
            raise InvalidRequest(f"{name}: must not be given more than once", field=name)
        else:
            fields[name] = value
    return fields


def _list_names(model: type[BaseModel]) -> frozenset[str]:
    aliases = (field.alias for field in model.model_fields.values())
    return frozenset(alias for alias in aliases if alias and alias.endswith("[]"))


M = TypeVar("M", bound=BaseModel)


def _validate(model: type[M], fields: Mapping[str, Any], services: ApiServices) -> M:
    return validate(model, fields, ignore_unknown=services.ignore_unknown_fields)


def parse_attempt(request: Request, raw: bytes) -> RequestAttempt | None:
    """Returns the identity of this attempt, or None if no header makes retries of the request recognisable."""
    key = request.headers.get(IDEMPOTENCY_KEY)
    count = request.headers.get(RETRY_COUNT, "")
    has_retry_count = bool(_RETRY_COUNT_PATTERN.fullmatch(count))
    if key is None and not has_retry_count:
        return None
    if key is not None and not 0 < len(key) <= _MAX_KEY_CHARS:
        raise InvalidRequest(f"Idempotency-Key: must have 1 to {_MAX_KEY_CHARS} characters", field="Idempotency-Key")
    return RequestAttempt(
        method=request.method,
        path=request.url.path,
        body_hash=hashlib.sha256(raw).digest(),
        idempotency_key=key,
        retry_count=int(count) if has_retry_count else 0,
    )
