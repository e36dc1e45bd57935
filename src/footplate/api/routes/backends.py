"""`/v1/backends`: lists the backends that sessions may choose, and how many running workers offer each."""

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller
from footplate.api.requests.parsing import read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import list_response

router = create_router("/v1/backends", "environments")


@router.get("", response_model=response_models.Listing[response_models.Backend])
async def list_backends(request: Request, principal: Caller) -> Response:  # noqa: ARG001 - every member may read it
    """Lists the backends, the default first."""
    read_query(request, NoParameters)
    services = get_services(request)
    workers = await services.reads.count_workers_by_backend()
    return list_response(
        [
            {"type": "backend", "name": each.name, "is_default": number == 0, "workers": workers.get(each.name, 0)}
            for number, each in enumerate(services.backends)
        ],
        next_page=None,
    )
