"""Wire models of templates for new sessions."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from footplate.api.wire.agent_and_environment_queries import PageSize
from footplate.api.wire.request_base import (
    NOT_NULLABLE,
    Body,
    Name,
    Parameters,
    Text,
    optional_timestamp,
    timestamp,
)
from footplate.api.wire.response_models import ResponseModel
from footplate.api.wire.session.sessions import SessionCreate
from footplate.domain.json import JsonObject
from footplate.domain.sessions.session_templates import StoredSessionTemplate

Description = Annotated[Text, StringConstraints(max_length=2000)]


class SessionTemplateCreate(Body):
    name: Name
    description: Description | None = None
    session: Annotated[SessionCreate, Field(description="The body of `POST /v1/sessions`.")]


class SessionTemplateUpdate(Body):
    """Fields that are omitted stay unchanged. `session` replaces the previous one completely."""

    name: Name = NOT_NULLABLE
    description: Description | None = None
    session: SessionCreate = NOT_NULLABLE


class ListSessionTemplates(Parameters):
    limit: PageSize = 20
    page: Text | None = None
    include_archived: bool = False


class SessionTemplateResponse(ResponseModel):
    type: Literal["session_template"]
    id: str
    name: str
    description: str | None
    session: dict[str, JsonValue]
    created_by: str
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


def serialize_template(template: StoredSessionTemplate) -> JsonObject:
    return {
        "type": "session_template",
        "id": template.id,
        "name": template.name,
        "description": template.description,
        "session": template.session,
        "created_by": template.created_by,
        "created_at": timestamp(template.created_at),
        "updated_at": timestamp(template.updated_at),
        "archived_at": optional_timestamp(template.archived_at),
    }
