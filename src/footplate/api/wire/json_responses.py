"""Encodes plain dictionaries as JSON responses with orjson. Responses are not validated against a model at run time."""

from collections.abc import Mapping, Sequence

import orjson
from starlette.responses import Response

from footplate.domain.json import Json, JsonObject


def json_response(body: JsonObject, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(body), status_code=status, headers=headers, media_type="application/json")


def list_response(data: Sequence[Json], *, next_page: str | None, **fields: Json) -> Response:
    return json_response({"data": list(data), "next_page": next_page, **fields})
