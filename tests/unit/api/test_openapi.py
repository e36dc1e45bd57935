"""The OpenAPI document contains the request bodies of all routes and one model for each name."""

from typing import Any

import pytest
from fastapi import FastAPI
from pydantic import BaseModel

from footplate.api import openapi
from footplate.api.wire.request_base import Body


class Nut(Body):
    size: int


class Wanted(Body):
    nuts: list[Nut]


def make_app(*routes: dict[str, Any]) -> FastAPI:
    app = FastAPI()

    async def nothing() -> None: ...

    for number, route in enumerate(routes):
        app.post(f"/{number}", **route)(nothing)
    return app


def build_document(*routes: dict[str, Any]) -> dict[str, Any]:
    return openapi.make_document_function(make_app(*routes))()


def model(name: str, base: type[BaseModel], **fields: Any) -> type[Any]:
    # pyrefly: ignore[unsupported-dynamic-base]  # the models of a test
    return type(name, (base,), {"__module__": "elsewhere", "__annotations__": fields})


def test_request_bodies_and_nested_models_are_found_by_their_routes() -> None:
    document = build_document(
        {"openapi_extra": openapi.describe_request(body=Wanted, media_type="text/x", description="Nuts.")}
    )
    assert document["components"]["schemas"].keys() == {"Wanted", "Nut"}
    assert document["paths"]["/0"]["post"]["requestBody"] == {
        "required": True,
        "description": "Nuts.",
        "content": {"text/x": {"schema": {"$ref": "#/components/schemas/Wanted"}}},
    }


def test_a_body_that_two_routes_share_is_one_model() -> None:
    again = {"openapi_extra": openapi.describe_request(body=Nut)}
    assert build_document(again, again, {"response_model": Nut})["components"]["schemas"].keys() == {"Nut"}


@pytest.mark.parametrize(
    "other",
    [
        {"openapi_extra": openapi.describe_request(body=model("Nut", Body, weight=int))},
        {"response_model": model("Nut", BaseModel, weight=int)},
        {"response_model": model("Box", BaseModel, nut=model("Nut", BaseModel, weight=int) | None)},
        {"responses": {404: {"model": model("Nut", BaseModel, weight=int)}}},
    ],
    ids=["body", "response", "within a response", "error"],
)
@pytest.mark.parametrize("body", [Nut, Wanted], ids=["body", "within a body"])
def test_two_models_of_one_name_are_refused_by_both_their_names(body: type[Body], other: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=rf"two models have the same name.*: {__name__}\.Nut and elsewhere\.Nut$"):
        build_document({"openapi_extra": openapi.describe_request(body=body)}, other)
