"""Stores edited tool inputs that need a second person's approval, and closes approvals and questions whose time limit
has passed.

An expired approval gets the outcome that the organisation configured, as an ordinary decision event. An expired
question gets its default.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

from footplate.domain import audit
from footplate.domain.errors import FootplateError
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.policy.approvals import DECIDED_BY_TIMEOUT, Approval, InputEdited
from footplate.domain.ports.api import Input
from footplate.domain.sessions import events, questions
from footplate.store.database import SQL, Database
from footplate.store.log.inputs import append_inputs
from footplate.store.object_store import Objects
from footplate.store.resources import audit_trail as trail
from footplate.store.row_mapping import Row

log = structlog.get_logger(__name__)

_BATCH_SIZE: Final = 200


def load_approval(row: Row) -> Approval:
    return Approval(
        id=row["id"],
        session_id=row["session_id"],
        turn_id=row["turn_id"],
        title=row["title"],
        body=row["body"] or {},
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        closed_at=row["closed_at"],
        outcome=row["outcome"],
        principal=row["principal"],
        edited_input=row["edited_input"],
        edited_by=row["edited_by"],
        reply=row["reply"],
    )


@asynccontextmanager
async def store_edits(database: Database, principal: Principal) -> AsyncIterator[None]:
    """Stores the edits of a request that is refused because two people must agree. They wait for another person."""
    try:
        yield
    except InputEdited as error:
        await _write_edits(database, principal, error)
        raise


async def _write_edits(database: Database, principal: Principal, refused: InputEdited) -> None:
    """Writes the edits in a separate transaction, because the request's transaction was rolled back."""
    async with database.transaction() as connection:
        for edit in refused.edits:
            await connection.execute(
                SQL["edit_ask"], refused.session_id, edit.event_id, edit.input, principal.id, principal.name
            )
            entry = audit.build_edit_entry(edit.event_id, edit.input)
            await trail.add_entry(
                connection, principal.organisation, entry, principal=principal.id, session=refused.session_id
            )


class ApprovalExpiry:
    """Background job that decides expired approvals with the outcome that the organisation configured, and expired
    questions with their default.

    The decision is an ordinary event, so a person who decides at the same time is either first or too late.
    """

    def __init__(self, database: Database, objects: Objects) -> None:
        self._database = database
        self._objects = objects

    async def run(self) -> None:
        for row in await self._database.fetch("due_asks", _BATCH_SIZE):
            try:
                await self._decide(row)
            except FootplateError as error:  # decided meanwhile, or the session is deleted: continue with the others
                log.info(
                    "approval could not be expired",
                    action="approval.not_expired",
                    ask=row["event_id"],
                    reason=error.message,
                )

    async def _decide(self, row: Row) -> None:
        principal = Principal(row["organisation"], DECIDED_BY_TIMEOUT, DECIDED_BY_TIMEOUT, frozenset())
        decision = await self._default_of_question(row) if row["question"] else _default_decision(row)
        async with self._database.transaction() as connection:
            await append_inputs(connection, self._objects, principal, row["session_id"], [decision])
        log.info("approval expired", action="approval.expired", session=row["session_id"], ask=row["event_id"])

    async def _default_of_question(self, row: Row) -> Input:
        body: Any = await self._objects.load_body(row["object_key"]) if row["object_key"] else row["body"]
        return Input(type=events.USER_CUSTOM_TOOL_RESULT, body=questions.expiry_fields(row["event_id"], body["input"]))


def _default_decision(row: Row) -> Input:
    body: JsonObject = {"tool_use_id": row["event_id"], "result": row["outcome"]}
    if row["outcome"] == "deny":
        body["deny_message"] = f"no decision was made before {row['expires_at']:%Y-%m-%d %H:%M:%S %Z}."
    return Input(type=events.USER_TOOL_CONFIRMATION, body=body)
