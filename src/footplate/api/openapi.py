"""The OpenAPI document: request bodies and query strings are read by hand, so they are described by hand as well."""

from collections.abc import Callable
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from footplate.api.wire.agents import AgentCreate, AgentUpdate
from footplate.api.wire.answers import Error
from footplate.api.wire.base import Body, Parameters
from footplate.api.wire.environments import EnvironmentCreate, EnvironmentUpdate
from footplate.api.wire.events import SendEvents
from footplate.api.wire.files import FileResourceParams
from footplate.api.wire.forks import SessionFork
from footplate.api.wire.leaving import SessionMerge, SessionPush
from footplate.api.wire.permissions import PolicyUpdate, SettingsImport
from footplate.api.wire.projects import ProjectCreate, ProjectUpdate, WorkspaceCreate, WorkspaceUpdate
from footplate.api.wire.replays import ReplayRequest
from footplate.api.wire.sessions import SessionCreate, SessionUpdate
from footplate.api.wire.transcripts import SessionImport

REF: Final = "#/components/schemas/{model}"
BODIES: Final[tuple[type[Body], ...]] = (
    AgentCreate,
    AgentUpdate,
    EnvironmentCreate,
    EnvironmentUpdate,
    SessionCreate,
    SessionUpdate,
    SessionFork,
    SessionImport,
    SessionMerge,
    SessionPush,
    SendEvents,
    ProjectCreate,
    ProjectUpdate,
    WorkspaceCreate,
    WorkspaceUpdate,
    FileResourceParams,
    PolicyUpdate,
    ReplayRequest,
    SettingsImport,
)
ERRORS: Final[dict[int | str, dict[str, Any]]] = {
    "4XX": {"model": Error, "description": "Refused; asking again changes nothing, but for 429."},
    "5XX": {"model": Error, "description": "Failed; may be tried again."},
}
OPEN: Final[dict[str, Any]] = {"security": []}
"""For the few routes that need no key."""


def takes(*, body: type[Body] | None = None, query: type[Parameters] | None = None) -> dict[str, Any]:
    described: dict[str, Any] = {}
    if body is not None:
        schema = {"$ref": REF.format(model=body.__name__)}
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if query is not None:
        properties = query.model_json_schema()["properties"]
        described["parameters"] = [
            {"name": name, "in": "query", "required": False, "schema": schema} for name, schema in properties.items()
        ]
    return described


def document(app: FastAPI) -> Callable[[], dict[str, Any]]:
    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _build(app)
        return app.openapi_schema

    return openapi


def _build(app: FastAPI) -> dict[str, Any]:
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    _, definitions = models_json_schema([(body, "validation") for body in BODIES], ref_template=REF)
    components: dict[str, Any] = schema.setdefault("components", {})
    components.setdefault("schemas", {}).update(definitions["$defs"])
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
    }
    schema["security"] = [{"bearer": []}, {"key": []}]
    return schema
