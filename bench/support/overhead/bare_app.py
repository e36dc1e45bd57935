"""A bare app for comparison: Starlette, an asyncpg pool and the store's own SQL statements, without any checks.

Run it as a module with the argument PORT and the database in FOOTPLATE_DATABASE_URL. The pool and the server have the
same options as the API's, and rows are returned as they are. Like the API, it stores each response of a POST and
deletes it after delivery.
"""

import hashlib
import os
import sys
from typing import Any, Final

import asyncpg
import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from footplate.config import Settings
from footplate.domain import ids
from footplate.domain.organisations.visibility import Visibility
from footplate.domain.sessions.turns import Mode
from footplate.store.database import SQL, Connection, Database, bind
from footplate.wiring import DEFAULT_ORGANISATION

_POOL: Final = Settings.model_fields["database_pool"].default
_PRINCIPAL: Final = "key_bare"
ResponseBody = dict[str, Any]


async def create_session(request: Request) -> Response:
    raw = await request.body()
    body = orjson.loads(raw)
    pool: asyncpg.Pool[asyncpg.Record] = request.app.state.pool
    agent = await pool.fetchrow(SQL["agent"], body["agent"], DEFAULT_ORGANISATION)
    assert agent is not None
    async with pool.acquire() as connection, connection.transaction():
        fingerprint = await _lock_request(connection, request, raw)
        row = await connection.fetchrow(
            *bind(
                "insert_session",
                id=ids.new_id(ids.SESSION),
                organisation=DEFAULT_ORGANISATION,
                agent_id=agent["id"],
                agent_version=agent["version"],
                agent=agent["definition"],
                environment_id=body["environment_id"],
                title=body.get("title"),
                metadata={},
                context={},
                principal=_PRINCIPAL,
                mode=Mode.INTERACTIVE,
                project_ids=[],
                workspace_id=None,
                permissions={},
                visible_to=Visibility.ORGANISATION,
                ends_when_done=False,
                deployment_id=None,
                environment_overrides={},
            )
        )
        assert row is not None
        response_body = dict(row)
        response_id = await _store_response(connection, fingerprint, response_body, row["id"])
    return _json_response(response_body, BackgroundTask(_delete_response, pool, response_id))


async def send_event(request: Request) -> Response:
    raw = await request.body()
    (event,) = orjson.loads(raw)["events"]
    session_id = request.path_params["session_id"]
    pool: asyncpg.Pool[asyncpg.Record] = request.app.state.pool
    async with pool.acquire() as connection, connection.transaction():
        fingerprint = await _lock_request(connection, request, raw)
        await connection.fetchrow(SQL["lock_head"], session_id, DEFAULT_ORGANISATION)
        (row,) = await connection.fetch(
            *bind(
                "append_input",
                session_id=session_id,
                organisation=DEFAULT_ORGANISATION,
                event_ids=[ids.new_id(ids.EVENT)],
                event_types=[event["type"]],
                bodies=[orjson.dumps({"content": event["content"]}).decode()],
                processed=[False],
                wake=True,
                control=False,
                principal=_PRINCIPAL,
                large_event_ids=[],
                object_keys=[],
                when_busy=["queue"],
                overrides=["{}"],
                contexts=["{}"],
                traceparent=None,
            )
        )
        response_body: ResponseBody = {"data": [{**event, **dict(row)}]}
        response_id = await _store_response(connection, fingerprint, response_body, session_id)
    return _json_response(response_body, BackgroundTask(_delete_response, pool, response_id))


async def retrieve_session(request: Request) -> Response:
    pool: asyncpg.Pool[asyncpg.Record] = request.app.state.pool
    row = await pool.fetchrow(SQL["session"], request.path_params["session_id"], DEFAULT_ORGANISATION)
    assert row is not None
    return _json_response(dict(row))


async def _lock_request(connection: Connection, request: Request, raw: bytes) -> bytes:
    fingerprint = hashlib.sha256(request.url.path.encode() + raw).digest()
    await connection.execute(SQL["lock_answer"], int.from_bytes(fingerprint[:8], "big", signed=True))
    return fingerprint


async def _store_response(
    connection: Connection, fingerprint: bytes, response_body: ResponseBody, session_id: str
) -> int:
    response_id: int = await connection.fetchval(
        *bind(
            "insert_answer",
            organisation=DEFAULT_ORGANISATION,
            fingerprint=fingerprint,
            body_hash=fingerprint,
            attempt=0,
            status=200,
            body=response_body,
            session_id=session_id,
        )
    )
    return response_id


async def _delete_response(pool: "asyncpg.Pool[asyncpg.Record]", response_id: int) -> None:
    await pool.fetch(SQL["forget_answer"], response_id)


def _json_response(response_body: ResponseBody, after: BackgroundTask | None = None) -> Response:
    return Response(orjson.dumps(response_body), media_type="application/json", background=after)


async def _serve(port: int, database_url: str) -> None:
    database = await Database.open(database_url, size=_POOL)
    app = Starlette(
        routes=[
            Route("/v1/sessions", create_session, methods=["POST"]),
            Route("/v1/sessions/{session_id}/events", send_event, methods=["POST"]),
            Route("/v1/sessions/{session_id}", retrieve_session),
            Route("/", lambda _: Response()),
        ]
    )
    app.state.pool = database._pool
    config = uvicorn.Config(
        app,
        port=port,
        log_level="warning",
        access_log=False,
        lifespan="off",
        loop="uvloop",
        http="httptools",
        timeout_graceful_shutdown=1,
    )
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    import uvloop

    uvloop.run(_serve(int(sys.argv[1]), os.environ["FOOTPLATE_DATABASE_URL"]))
