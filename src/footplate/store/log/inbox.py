"""Reads the inbox, and stores assignments, snoozes and dismissals of its items.

The items are a query over what waits for a person: open approvals and questions, and the sessions and merges with a
problem, which partial indexes find. What a session did before costs nothing.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from footplate.domain import ids
from footplate.domain.errors import InvalidRequest, NotFound
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.visibility import ViewFilter
from footplate.domain.sessions import inbox
from footplate.domain.sessions.inbox import (
    ConflictingMerge,
    InboxCounts,
    InboxItem,
    InboxItemNotFound,
    InboxKind,
    InboxQuery,
    InboxSession,
    InboxUnit,
    InboxUpdate,
    NotDismissible,
)
from footplate.domain.sessions.threads import THREAD_ID
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.log.approval_edits_and_expiry import load_approval
from footplate.store.object_store import Objects
from footplate.store.row_mapping import Row


class InboxUnitOfWork(InboxUnit):
    """The methods of a unit of work that change items of the inbox."""

    _connection: Connection
    _objects: Objects

    async def update_inbox_item(self, principal: Principal, item_id: str, update: InboxUpdate) -> InboxItem:
        old = await load_item(self._connection, self._objects, principal, item_id)
        assignee = update.assignee_id if update.changes_assignee else old.assignee_id
        snoozed_until = update.snoozed_until if update.changes_snooze else old.snoozed_until
        if (assignee, snoozed_until) == (old.assignee_id, old.snoozed_until):
            return old
        if assignee is not None and assignee != old.assignee_id:
            await self._check_assignee(principal, assignee)
        if not await self._connection.fetchval(SQL["keep_session"], old.session.id, principal.organisation):
            raise InboxItemNotFound(item_id)
        await self._connection.execute(
            *bind(
                "set_inbox_state",
                session_id=old.session.id,
                item_id=item_id,
                organisation=principal.organisation,
                assignee=assignee,
                snoozed_until=snoozed_until,
                updated_by=principal.id,
                changes_assignee=update.changes_assignee,
                changes_snooze=update.changes_snooze,
            )
        )
        new = await load_item(self._connection, self._objects, principal, item_id)
        if update.changes_assignee and new.assignee_id != assignee:
            raise InvalidRequest(
                f"assignee_id: the member {assignee!r} cannot see the session of this item",
                field="assignee_id",
                help_text="Assign the item to a member who can see the session, or share the session with the member.",
            )
        await self._add_inbox_change(old.session.id, item_id, old.kind, "updated")
        return new

    async def _check_assignee(self, principal: Principal, member_id: str) -> None:
        if not await self._connection.fetch(SQL["members_of"], [member_id], principal.organisation):
            raise NotFound("member", member_id)

    async def dismiss_inbox_item(self, principal: Principal, item_id: str) -> str:
        try:
            item = await load_item(self._connection, self._objects, principal, item_id)
        except InboxItemNotFound:
            return await self._check_dismissed(principal, item_id)
        if item.approval is not None:
            raise NotDismissible(item.kind)
        if not await self._connection.fetch(SQL["dismiss_problem"], item.session.id, item_id):
            return await self._check_dismissed(principal, item_id)
        await self._add_inbox_change(item.session.id, item_id, item.kind, "dismissed")
        return item.session.id

    async def _check_dismissed(self, principal: Principal, item_id: str) -> str:
        """Returns the session of an item that was dismissed before, if the principal can see it."""
        view = ViewFilter.of(principal)
        for row in await self._connection.fetch(SQL["find_problem"], item_id, principal.organisation):
            session_id: str = row["session_id"]
            visible = await self._connection.fetch(
                SQL["visible_sessions"], [session_id], principal.organisation, view.audiences, view.project_ids
            )
            if visible and row["is_dismissed"]:
                return session_id
        raise InboxItemNotFound(item_id)

    async def record_merge_conflict(
        self, principal: Principal, session_id: str, project_id: str, conflict: ConflictingMerge
    ) -> None:
        if not await self._connection.fetchval(SQL["keep_session"], session_id, principal.organisation):
            raise NotFound("session", session_id)
        item_id = await self._connection.fetchval(
            *bind(
                "record_merge_conflict",
                id=ids.new_id(ids.MERGE_CONFLICT),
                session_id=session_id,
                project_id=project_id,
                branch=conflict.branch,
                message=conflict.message,
                files=[*conflict.files],
            )
        )
        await self._add_inbox_change(session_id, item_id, InboxKind.MERGE_CONFLICT, "added")

    async def remove_merge_conflict(self, session_id: str, project_id: str, branch: str) -> bool:
        rows = await self._connection.fetch(SQL["remove_merge_conflict"], session_id, project_id, branch)
        for row in rows:
            await self._add_inbox_change(session_id, row["id"], InboxKind.MERGE_CONFLICT, "closed")
        return bool(rows)

    async def _add_inbox_change(
        self, session_id: str, item_id: str, kind: InboxKind, change: inbox.InboxChange
    ) -> None:
        body: JsonObject = {"item_id": item_id, "kind": kind.value, "change": change}
        await add_session_change(self._connection, session_id, inbox.CHANGED, body)


async def add_session_change(connection: Connection, session_id: str, event_type: str, body: JsonObject) -> None:
    """Adds a change to the feed that is no event of the session's log."""
    await connection.execute(SQL["add_session_change_to_feed"], session_id, event_type, ids.new_id(ids.EVENT), body)


async def load_item(connection: Connection, objects: Objects, principal: Principal, item_id: str) -> InboxItem:
    view = ViewFilter.of(principal)
    row = await connection.fetchrow(
        f"{SQL['inbox_item']}\n{SQL['inbox_details']}",
        principal.organisation,
        view.audiences,
        view.project_ids,
        item_id,
    )
    if row is None:
        raise InboxItemNotFound(item_id)
    return await _load_row(objects, row)


async def read_item(database: Database, objects: Objects, principal: Principal, item_id: str) -> InboxItem:
    async with database.connection() as connection:
        return await load_item(connection, objects, principal, item_id)


async def read_page(
    database: Database, objects: Objects, principal: Principal, query: InboxQuery
) -> Sequence[InboxItem]:
    view, (after_time, after_id) = ViewFilter.of(principal), query.after or (None, None)
    async with database.connection() as connection:
        page, *values = bind(
            "inbox_page",
            organisation=principal.organisation,
            audiences=view.audiences,
            project_ids=view.project_ids,
            principal=principal.id,
            view=query.view,
            kind=query.kind,
            project_id=query.project_id,
            after_time=after_time,
            after_id=after_id,
            limit=query.limit,
        )
        rows = await connection.fetch(f"{page}\n{SQL['inbox_details']}", *values)
    return await asyncio.gather(*(_load_row(objects, row) for row in rows))


async def count_items(database: Database, principal: Principal) -> InboxCounts:
    view = ViewFilter.of(principal)
    row = await database.fetchrow(
        "inbox_counts", principal.organisation, view.audiences, view.project_ids, principal.id
    )
    assert row is not None
    return InboxCounts(needs_you=row["needs_you"], mine=row["mine"], snoozed=row["snoozed"])


async def _load_row(objects: Objects, row: Row) -> InboxItem:
    """Loads an item. The input of a call is complete, however large, because a person decides on it."""
    kind = InboxKind(row["kind"])
    item = InboxItem(
        id=row["id"],
        kind=kind,
        session=InboxSession(
            id=row["session_id"],
            title=row["title"],
            project_ids=row["project_ids"],
            agent_name=row["session_agent"],
            parent_id=row["parent_session_id"],
        ),
        turn_id=row["turn_id"],
        turn_number=row["turn_number"] or None,
        created_at=row["created_at"],
        assignee_id=row["assignee_id"],
        assignee_name=row["assignee_name"],
        snoozed_until=row["snoozed_until"],
    )
    if kind in {InboxKind.APPROVAL, InboxKind.QUESTION}:
        approval = load_approval(row)
        if row["object_key"]:
            approval = replace(approval, body=await objects.load_body(row["object_key"]))
        thread_id = approval.body.get(THREAD_ID)
        return replace(item, approval=approval, thread_id=thread_id if isinstance(thread_id, str) else None)
    if row["branch"] is not None:
        conflict = ConflictingMerge(branch=row["branch"], message=row["conflict_message"], files=row["conflict_files"])
        return replace(item, conflict=conflict)
    if kind is InboxKind.MERGE_CONFLICT:
        return replace(item, conflict=inbox.load_conflict(row["turn_result"] or {}))
    return replace(item, failure=inbox.load_failure(item.id, row["turn_status"], row["turn_result"] or {}))
