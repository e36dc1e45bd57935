"""`/v1/sessions/{id}/steps`: adds, lists, edits, moves and removes the steps of a session's queue, and plays or pauses
the session.
"""

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_empty_body, read_message_body, read_query
from footplate.api.requests.route_permissions import check_delivery_steps
from footplate.api.requests.shell_modes import check_shell_modes, environment_of_session, modes_of_steps
from footplate.api.routes.files import check_input_references
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response, list_response
from footplate.api.wire.session import steps
from footplate.api.wire.session.steps import (
    AddSteps,
    EditStep,
    ListSteps,
    MoveStep,
    PromptStep,
    RetryStep,
    SubmitResult,
)
from footplate.domain.organisations.principals import Principal
from footplate.domain.ports.api import Input, PlaybackAction, UnitOfWork
from footplate.domain.sessions import events
from footplate.domain.sessions.steps import Step, StepDefinition

router = create_router("/v1/sessions/{session_id}", "steps")


@router.post(
    "/steps",
    response_model=response_models.Listing[response_models.Step],
    openapi_extra=describe_request(body=AddSteps),
)
async def add_steps(request: Request, session_id: str, principal: Caller) -> Response:
    """Adds steps to the queue. They run one after the other, unless the session is paused."""
    body, raw = await read_message_body(request, AddSteps)
    definitions = [(step.to_definition(), step.overrides_of_turn) for step in body.steps]
    check_delivery_steps(principal, [definition for definition, _ in definitions])
    modes = modes_of_steps({}, definitions)
    services = get_services(request)
    await check_shell_modes(services, modes, environment_of_session(services, principal, session_id))
    prompts = [
        Input(type=events.USER_MESSAGE, body={"content": [*content]})
        for definition, _ in definitions
        for content in definition.contents
    ]
    await check_input_references(services, principal, prompts)

    async def work(unit: UnitOfWork) -> ChangeResult:
        added, accepted = await unit.add_steps(principal, session_id, definitions, before=body.before)
        return {"data": [steps.serialize_step(step) for step in added], "next_page": None}, accepted

    return await execute_change(request, principal, raw, work)


@router.get(
    "/steps",
    response_model=response_models.Listing[response_models.Step],
    openapi_extra=describe_request(query=ListSteps),
)
async def list_steps(request: Request, session_id: str, principal: Caller) -> Response:
    """Lists steps in the order of the queue. Messages that were sent as events are steps too."""
    query = read_query(request, ListSteps)
    cursor = pagination.decode_number_cursor("steps", query.page, "asc")
    rows = await get_services(request).reads.steps(
        principal, session_id, states=query.parsed_states, limit=query.limit + 1, after=cursor[1] if cursor else None
    )
    page = rows[: query.limit]
    next_page = pagination.encode_number_cursor("steps", "asc", page[-1].sort_key) if len(rows) > query.limit else None
    return list_response([steps.serialize_step(row) for row in page], next_page=next_page)


@router.get("/steps/{step_id}", response_model=response_models.Step)
async def retrieve_step(request: Request, session_id: str, step_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    return json_response(steps.serialize_step(await get_services(request).reads.step(principal, session_id, step_id)))


@router.post("/steps/{step_id}", response_model=response_models.Step, openapi_extra=describe_request(body=EditStep))
async def edit_step(request: Request, session_id: str, step_id: str, principal: Caller) -> Response:
    """Edits a pending step."""
    body, raw = await read_message_body(request, EditStep)
    if body.content is not None:
        content = PromptStep(kind="prompt", content=body.content).to_definition().content
        sent = Input(type=events.USER_MESSAGE, body={"content": [*content]})
        await check_input_references(get_services(request), principal, [sent])

    def change(step: Step) -> StepDefinition:
        check_delivery_steps(principal, [step.definition])
        return body.apply(step)

    async def work(unit: UnitOfWork) -> ChangeResult:
        step, accepted = await unit.edit_step(principal, session_id, step_id, change)
        return steps.serialize_step(step), accepted

    return await execute_change(request, principal, raw, work)


@router.post(
    "/steps/{step_id}/move", response_model=response_models.Step, openapi_extra=describe_request(body=MoveStep)
)
async def move_step(request: Request, session_id: str, step_id: str, principal: Caller) -> Response:
    """Moves a pending step before another one, or to the end of the queue."""
    body, raw = await read_body(request, MoveStep)

    async def work(unit: UnitOfWork) -> ChangeResult:
        step, accepted = await unit.move_step(principal, session_id, step_id, before=body.before)
        return steps.serialize_step(step), accepted

    return await execute_change(request, principal, raw, work)


@router.delete("/steps/{step_id}", response_model=response_models.Step)
async def remove_step(request: Request, session_id: str, step_id: str, principal: Caller) -> Response:
    """Removes a pending step from the queue. It is then cancelled."""
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        step, accepted = await unit.remove_step(principal, session_id, step_id)
        return steps.serialize_step(step), accepted

    return await execute_change(request, principal, raw, work)


@router.post(
    "/steps/{step_id}/retry", response_model=response_models.Step, openapi_extra=describe_request(body=RetryStep)
)
async def retry_step(request: Request, session_id: str, step_id: str, principal: Caller) -> Response:
    """Repeats a failed or cancelled step: adds a copy at the front of the queue. A step is repeated once."""
    body, raw = await read_body(request, RetryStep)

    def check(step: Step) -> None:
        check_delivery_steps(principal, [step.definition])

    async def work(unit: UnitOfWork) -> ChangeResult:
        step, accepted = await unit.retry_step(principal, session_id, step_id, play=body.play, check=check)
        return steps.serialize_step(step), accepted

    return await execute_change(request, principal, raw, work)


@router.post(
    "/steps/{step_id}/result", response_model=response_models.Step, openapi_extra=describe_request(body=SubmitResult)
)
async def submit_result(request: Request, session_id: str, step_id: str, principal: Caller) -> Response:
    """Submits the result of an external step. It is accepted once."""
    body, raw = await read_body(request, SubmitResult)

    async def work(unit: UnitOfWork) -> ChangeResult:
        step, accepted = await unit.submit_result(
            principal, session_id, step_id, body.to_command(), is_error=body.status != "completed"
        )
        return steps.serialize_step(step), accepted

    return await execute_change(request, principal, raw, work)


@router.get("/playback", response_model=response_models.Playback)
async def retrieve_playback(request: Request, session_id: str, principal: Caller) -> Response:
    read_query(request, NoParameters)
    playback = await get_services(request).reads.playback(principal, session_id)
    return json_response(steps.serialize_playback(session_id, playback))


@router.post("/play", response_model=response_models.Playback)
async def play(request: Request, session_id: str, principal: Caller) -> Response:
    """Lets the session run its steps."""
    return await _change_playback(request, session_id, principal, "play")


@router.post("/pause", response_model=response_models.Playback)
async def pause(request: Request, session_id: str, principal: Caller) -> Response:
    """Lets the current step finish and starts no other."""
    return await _change_playback(request, session_id, principal, "pause")


@router.post("/next", response_model=response_models.Playback)
async def run_next(request: Request, session_id: str, principal: Caller) -> Response:
    """Runs one step of a paused session."""
    return await _change_playback(request, session_id, principal, "next")


async def _change_playback(request: Request, session_id: str, principal: Principal, action: PlaybackAction) -> Response:
    raw = await read_empty_body(request)

    async def work(unit: UnitOfWork) -> ChangeResult:
        playback, accepted = await unit.change_playback(principal, session_id, action)
        return steps.serialize_playback(session_id, playback), accepted

    return await execute_change(request, principal, raw, work)
