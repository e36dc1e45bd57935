"""`/v1/questions`: lists the questions that agents ask, across all sessions, and takes a person's reply."""

from fastapi import Request
from starlette.responses import Response

from footplate.api import pagination
from footplate.api.auth import Caller
from footplate.api.openapi import describe_request
from footplate.api.requests.idempotency import ChangeResult, execute_change
from footplate.api.requests.parsing import read_body, read_query
from footplate.api.routing import create_router
from footplate.api.service_container import get_services
from footplate.api.wire import response_models
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response, list_response
from footplate.api.wire.policy import policy_response_models
from footplate.api.wire.policy.approvals import ListApprovals
from footplate.api.wire.policy.questions import QuestionReply, serialize_question
from footplate.domain.errors import Conflict
from footplate.domain.pagination import Page
from footplate.domain.ports.api import Input, UnitOfWork
from footplate.domain.sessions import events, questions

router = create_router("/v1/questions", "questions")


@router.get(
    "",
    response_model=response_models.Listing[policy_response_models.Question],
    openapi_extra=describe_request(query=ListApprovals),
)
async def list_questions(request: Request, principal: Caller) -> Response:
    """Lists pending questions, the oldest first. Answered questions are not listed."""
    query = read_query(request, ListApprovals)
    cursor = pagination.decode_row_cursor("questions", query.page, "asc")
    page = Page(limit=query.limit + 1, order="asc", after=cursor.position if cursor else None)
    reads = get_services(request).reads
    rows = await reads.approvals(principal, page, session_id=query.session_id, is_question=True)
    page_rows, page_cursors = pagination.cut_page(
        "questions", rows, lambda row: (row.created_at, row.id), limit=query.limit, order="asc", cursor=cursor
    )
    return list_response([serialize_question(row) for row in page_rows], next_page=page_cursors.next_page)


@router.get("/{question_id}", response_model=policy_response_models.Question)
async def retrieve_question(request: Request, question_id: str, principal: Caller) -> Response:
    """Retrieves a question, pending or answered, by the ID of the event that asks it."""
    read_query(request, NoParameters)
    question = await get_services(request).reads.approval(principal, question_id, is_question=True)
    return json_response(serialize_question(question))


@router.post(
    "/{question_id}/answer",
    response_model=response_models.SentEvents,
    openapi_extra=describe_request(body=QuestionReply),
)
async def send_reply(request: Request, question_id: str, principal: Caller) -> Response:
    """Answers a question. The session continues with the answer, which counts once: repeating it has no effect, and a
    different one is refused with 409.
    """
    body, raw = await read_body(request, QuestionReply)
    question = await get_services(request).reads.approval(principal, question_id, is_question=True)
    if question.status == "closed":
        raise Conflict(
            f"The question {question_id!r} was closed without an answer, because its turn has ended.",
            help_text="Send a message to the session instead.",
        )
    call_input = question.body.get("input")
    fields = questions.result_fields(question_id, call_input if isinstance(call_input, dict) else {}, body.answers)
    sent = Input(type=events.USER_CUSTOM_TOOL_RESULT, body=fields)

    async def work(unit: UnitOfWork) -> ChangeResult:
        accepted = await unit.send(principal, question.session_id, [sent])
        return {"data": [events.to_wire(accepted.positions[0])]}, accepted

    return await execute_change(request, principal, raw, work)
