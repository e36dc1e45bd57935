"""`/v1/workers`, `/v1/queues` and `/v1/versions`: report the state of the whole deployment, not of one organisation."""

import platform

from fastapi import Request
from starlette.responses import Response

from footplate import __version__
from footplate.api.auth import Caller
from footplate.api.requests.parsing import read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import deployment_health, response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response, list_response

router = create_router("/v1", "health")


@router.get("/workers", response_model=response_models.Listing[deployment_health.Worker])
async def list_workers(request: Request, principal: Caller) -> Response:  # noqa: ARG001 - the route table checks the role
    """Lists the workers that run, and those that were lost within the last day. The newest is first."""
    read_query(request, NoParameters)
    workers = await get_services(request).reads.workers()
    return list_response([deployment_health.serialize_worker(worker) for worker in workers], next_page=None)


@router.get("/queues", response_model=response_models.Listing[deployment_health.TaskQueue])
async def list_queues(request: Request, principal: Caller) -> Response:  # noqa: ARG001 - the route table checks the role
    """Lists Temporal's task queues with the tasks that wait in them."""
    read_query(request, NoParameters)
    queues = await get_services(request).queues.describe()
    return list_response([deployment_health.serialize_queue(queue) for queue in queues], next_page=None)


@router.get("/versions", response_model=deployment_health.Versions)
async def retrieve_versions(request: Request, principal: Caller) -> Response:  # noqa: ARG001 - every member may read it
    """Returns the versions of this API server, of the workers, and of what they use."""
    read_query(request, NoParameters)
    services = get_services(request)
    return json_response(
        deployment_health.serialize_versions(
            __version__,
            platform.python_version(),
            await services.reads.workers(),
            await services.reads.database_versions(),
            await services.queues.server_version(),
        )
    )
