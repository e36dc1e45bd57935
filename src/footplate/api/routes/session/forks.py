"""`/v1/sessions/{id}/fork`: creates a session that starts from the state of another session at a given event."""

from dataclasses import replace

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_message_body
from footplate.api.requests.shell_modes import environment_by_id, environment_of_session
from footplate.api.routes.files import check_input_references
from footplate.api.routes.session.sessions import can_prewarm, load_agent_snapshot
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import response_models
from footplate.api.wire.session import forks, sessions
from footplate.api.wire.session.events import to_inputs
from footplate.api.wire.session.forks import SessionFork
from footplate.domain.ports.api import UnitOfWork

router = create_router("/v1/sessions/{session_id}/fork", "sessions")


@router.post("", response_model=response_models.Session, openapi_extra=describe_request(body=SessionFork))
async def fork_session(request: Request, session_id: str, principal: Caller) -> Response:
    """Forks a session. The parent does not change, and its history is shared with the fork, not copied."""
    body, raw = await read_message_body(request, SessionFork)
    services = get_services(request)
    point = forks.parse_fork_point(body)
    inputs = to_inputs(body.initial_events)
    environment = (
        environment_of_session(services, principal, session_id)
        if body.environment_id is None
        else environment_by_id(services, principal, body.environment_id)
    )
    await check_input_references(services, principal, inputs, environment)
    agent = None if body.agent is None else await load_agent_snapshot(services, principal, body.agent, environment)
    update = forks.make_fork_update(body, agent, default_harness=services.default_harness)

    async def work(unit: UnitOfWork) -> ChangeResult:
        session, accepted = await unit.fork_session(
            principal,
            session_id,
            point=point,
            environment_id=body.environment_id,
            change=update,
            inputs=inputs,
        )
        return sessions.serialize_session(session), replace(accepted, prepare=can_prewarm(services, session.agent))

    return await execute_change(request, principal, raw, work, audit_action="session.fork")
