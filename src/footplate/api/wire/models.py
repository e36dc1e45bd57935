"""Wire models of the models that agents can use: the query and the response, in the form of the reference API."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

from footplate.api.wire.request_base import Parameters, Text
from footplate.api.wire.response_models import ResponseModel
from footplate.domain.json import JsonObject

_UNKNOWN_TIME: Final = "1970-01-01T00:00:00Z"


class ListModels(Parameters):
    limit: Annotated[int, Field(ge=1, le=1000)] = 20
    after_id: Annotated[Text | None, Field(description="The ID of a model: the page starts after it.")] = None
    before_id: Annotated[Text | None, Field(description="The ID of a model: the page ends before it.")] = None


class ModelResponse(ResponseModel):
    type: Literal["model"]
    id: Annotated[str, Field(description="The name for an agent's `model`: `connection/model`.")]
    display_name: str
    created_at: Annotated[str, Field(description="Always 1970-01-01, because the time of the release is not known.")]
    lifecycle: Literal["active"]
    connection: str
    provider: str


class ModelListing(ResponseModel):
    data: list[ModelResponse]
    has_more: bool
    first_id: str | None
    last_id: str | None


@dataclass(frozen=True, slots=True, order=True)
class ListedModel:
    connection: str
    model: str
    provider: str

    @property
    def id(self) -> str:
        return f"{self.connection}/{self.model}"


def serialize_model(model: ListedModel) -> JsonObject:
    return {
        "type": "model",
        "id": model.id,
        "display_name": model.model,
        "created_at": _UNKNOWN_TIME,
        "lifecycle": "active",
        "connection": model.connection,
        "provider": model.provider,
    }


def serialize_page(models: Sequence[ListedModel], query: ListModels) -> JsonObject:
    """Returns the page of the sorted models. A model that is not listed any more starts or ends no page."""
    before, after = _index(models, query.before_id), _index(models, query.after_id)
    start = 0 if after is None else after + 1
    end = len(models) if before is None else before
    page = models[start:end]
    is_backward = before is not None and after is None
    cut = page[-query.limit :] if is_backward else page[: query.limit]
    return {
        "data": [serialize_model(model) for model in cut],
        "has_more": len(page) > len(cut),
        "first_id": cut[0].id if cut else None,
        "last_id": cut[-1].id if cut else None,
    }


def _index(models: Iterable[ListedModel], model_id: str | None) -> int | None:
    return next((index for index, model in enumerate(models) if model.id == model_id), None)
