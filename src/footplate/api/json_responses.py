"""Encodes JSON responses. Plain dictionaries go straight through orjson, so that nothing is validated twice."""

from collections.abc import Mapping, Sequence

import orjson
from starlette.responses import Response

from footplate.domain.json import Json, JsonObject


def json_response(body: JsonObject, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(orjson.dumps(body), status_code=status, headers=headers, media_type="application/json")


def list_response(data: Sequence[Json], *, next_page: str | None) -> Response:
    return json_response({"data": list(data), "next_page": next_page})
