"""`/v1/models`: lists the models that agents of the caller's organisation can use, by connection."""

import asyncio

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.parsing import read_query
from footplate.api.routing import create_router
from footplate.api.service_container import ApiServices, get_services
from footplate.api.wire import models
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.models import ListedModel, ListModels, ModelListing
from footplate.domain.agents.model_connections import ModelConnection
from footplate.domain.organisations.principals import Principal

router = create_router("/v1/models", "models")


@router.get("", response_model=ModelListing, openapi_extra=describe_request(query=ListModels))
async def list_models(request: Request, principal: Caller) -> Response:
    """Lists the models that the operator named for each connection, or else those that the library knows. An agent can
    also use other models of a connection.
    """
    query = read_query(request, ListModels)
    return json_response(models.serialize_page(await _load_models(get_services(request), principal), query))


async def _load_models(services: ApiServices, principal: Principal) -> list[ListedModel]:
    connections = services.connections.list_connections(principal.organisation).values()
    return await asyncio.to_thread(lambda: sorted(m for one in connections for m in _list_models(services, one)))


def _list_models(services: ApiServices, connection: ModelConnection) -> list[ListedModel]:
    names = connection.models or services.known_models(connection.provider)
    return [ListedModel(connection.name, name, connection.provider) for name in dict.fromkeys(names)]
