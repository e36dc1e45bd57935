"""`/v1/sessions/{id}/diff`: what changed of a session's files, in a turn, from event to event, or in all."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from footplate.api.auth import Asking
from footplate.api.openapi import takes
from footplate.api.replies import reply
from footplate.api.requests import read_query
from footplate.api.routing import router_of
from footplate.api.services import services_of
from footplate.api.wire import answers, diffs
from footplate.api.wire.diffs import PATCH, ReadDiff

router = router_of("/v1/sessions/{session_id}/diff", "sessions")


@router.get(
    "",
    response_model=answers.Diff,
    responses={200: {"content": {PATCH: {}}}},
    openapi_extra=takes(query=ReadDiff),
)
async def read_diff(request: Request, session_id: str, principal: Asking) -> Response:
    """By snapshots that were taken with the events: a summary of each tree, or the patch of one as a stream."""
    query = read_query(request, ReadDiff)
    service = services_of(request).diffs
    found = await service.find(principal, session_id, diffs.asked_of(query))
    if query.format == "json":
        return reply(diffs.answer(session_id, [(diff, await service.changes(diff)) for diff in found]))
    diff = diffs.one_of(found)
    async with AsyncExitStack() as opening:
        pieces = await opening.enter_async_context(service.patch(diff))
        first = await anext(pieces, b"")  # what goes wrong before there is anything to say is an answer of its own
        return StreamingResponse(_sent(first, pieces, opening.pop_all()), media_type=PATCH)


async def _sent(first: bytes, rest: AsyncIterator[bytes], until: AsyncExitStack) -> AsyncIterator[bytes]:
    async with until:
        yield first
        async for piece in rest:
            yield piece
