"""Builds the OpenAPI document of the API. Each route declares its request body and query string explicitly, because
FastAPI does not read them.

Two models must not share a schema name. FastAPI ensures this only for response models, because it does not know the
request bodies.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, get_args

import orjson
from fastapi import FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.responses import Response
from starlette.routing import Route

from footplate.api.wire.request_base import Body, Parameters
from footplate.api.wire.response_models import Error

SCHEMA_REF: Final = "#/components/schemas/{model}"
ERROR_RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {
        "model": Error,
        "description": "The request was refused. Retry it only if the status is 408 or 429.",
    },
    "5XX": {"model": Error, "description": "The server could not process the request. You can retry it."},
}
NO_AUTHENTICATION: Final[dict[str, Any]] = {"security": []}
"""For the few routes that need no API key."""


class RequestDescription(dict[str, Any]):
    """The request part of an operation in the document, and the model of its body."""

    def __init__(self, body: type[Body] | None, description: dict[str, Any]) -> None:
        super().__init__(description)
        self.body = body


def describe_request(
    *,
    body: type[Body] | None = None,
    media_type: str = "application/json",
    description: str | None = None,
    query: type[Parameters] | None = None,
    needs_key: bool = True,
) -> RequestDescription:
    operation: dict[str, Any] = {}
    if body is not None:
        schema = {"$ref": SCHEMA_REF.format(model=body.__name__)}
        request: dict[str, Any] = {"required": True, "content": {media_type: {"schema": schema}}}
        if description is not None:
            request["description"] = description
        operation["requestBody"] = request
    if query is not None:
        document = query.model_json_schema()
        definitions = document.get("$defs", {})
        operation["parameters"] = [
            {"name": name, "in": "query", "required": False, "schema": _inline_references(parameter, definitions)}
            for name, parameter in document["properties"].items()
        ]
    if not needs_key:
        operation.update(NO_AUTHENTICATION)
    return RequestDescription(body, operation)


def _inline_references(schema: Any, definitions: dict[str, Any]) -> Any:
    """Replaces references to the definitions of a query model, which the document does not contain."""
    if isinstance(schema, list):
        return [_inline_references(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        siblings = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_inline_references(definitions[schema["$ref"].rpartition("/")[2]], definitions), **siblings}
    return {key: _inline_references(value, definitions) for key, value in schema.items()}


def make_document_function(app: FastAPI) -> Callable[[], dict[str, Any]]:
    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app)
        return app.openapi_schema

    return openapi


def create_document_route(app: FastAPI) -> Route:
    """Serves the document without authentication. It is built once, outside of the event loop, and encoded once."""
    build_lock = asyncio.Lock()
    encoded = b""

    async def read_document(_request: Request) -> Response:
        nonlocal encoded
        async with build_lock:
            encoded = encoded or await asyncio.to_thread(lambda: orjson.dumps(app.openapi()))
        return Response(encoded, media_type="application/json")

    return Route("/openapi.json", read_document, include_in_schema=False)


def _build(app: FastAPI) -> dict[str, Any]:
    routes = [route for route in app.routes if isinstance(route, APIRoute)]
    bodies = list(dict.fromkeys(_request_models(routes)))
    _check_unique_names([*bodies, *_response_models(routes)])
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    _, definitions = models_json_schema([(body, "validation") for body in bodies], ref_template=SCHEMA_REF)
    components: dict[str, Any] = schema.setdefault("components", {})
    components.setdefault("schemas", {}).update(definitions.get("$defs", {}))
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    }
    security: list[dict[str, list[str]]] = [{"bearer": []}, {"key": []}]
    schema["security"] = security
    return schema


def _request_models(routes: Iterable[APIRoute]) -> Iterator[type[Body]]:
    for route in routes:
        if isinstance(route.openapi_extra, RequestDescription) and route.openapi_extra.body is not None:
            yield route.openapi_extra.body


def _response_models(routes: Iterable[APIRoute]) -> Iterator[object]:
    for route in routes:
        yield route.response_model
        yield from (response.get("model") for response in route.responses.values())


def _check_unique_names(kinds: Iterable[object]) -> None:
    """Raises `TypeError` if two models have the same name: the document would contain one schema for both."""
    found: set[type[BaseModel]] = set()
    for kind in kinds:
        _collect_models(kind, found)
    named: dict[str, type[BaseModel]] = {}
    for model in sorted(found, key=_full_name):
        other = named.setdefault(model.__name__, model)
        if other is not model:
            both = f"{_full_name(other)} and {_full_name(model)}"
            raise TypeError(f"two models have the same name in the OpenAPI document; rename one: {both}")


def _collect_models(type_: object, found: set[type[BaseModel]]) -> None:
    """Collects all models in a type: the type itself, the types of its fields, and so on."""
    if isinstance(type_, type) and issubclass(type_, BaseModel) and type_ not in found:
        found.add(type_)
        for field in type_.model_fields.values():
            _collect_models(field.annotation, found)
    for part in get_args(type_):
        _collect_models(part, found)


def _full_name(model: type[BaseModel]) -> str:
    return f"{model.__module__}.{model.__qualname__}"
