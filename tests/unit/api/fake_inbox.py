"""In-memory fakes of the inbox, comments, pins and templates. Tests of the store show what is in the inbox."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from footplate.domain import ids
from footplate.domain.errors import NotFound
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page
from footplate.domain.sessions.comments import Comment, CommentNotFound, NewComment
from footplate.domain.sessions.events import Position
from footplate.domain.sessions.inbox import (
    ConflictingMerge,
    InboxCounts,
    InboxItem,
    InboxItemNotFound,
    InboxQuery,
    InboxUpdate,
    InboxView,
)
from footplate.domain.sessions.session_templates import SessionTemplateDefinition, StoredSessionTemplate

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class InboxWorld:
    items: dict[str, tuple[str, InboxItem]] = field(default_factory=dict)
    """By id, with the organisation."""
    comments: dict[str, Comment] = field(default_factory=dict)
    templates: dict[str, StoredSessionTemplate] = field(default_factory=dict)
    pins: set[tuple[str, str]] = field(default_factory=set)
    conflicts: list[tuple[str, str, str]] = field(default_factory=list)
    writes: int = 0

    def now(self) -> datetime:
        self.writes += 1
        return NOW + timedelta(seconds=self.writes)


class FakeInboxReads:
    inbox_world: InboxWorld

    async def inbox(self, principal: Principal, query: InboxQuery) -> Sequence[InboxItem]:
        found = [
            item for organisation, item in self.inbox_world.items.values() if organisation == principal.organisation
        ]
        found = [item for item in found if query.kind in {None, item.kind}]
        if query.view is not InboxView.ALL:
            found = [item for item in found if (item.snoozed_until is not None) is (query.view is InboxView.SNOOZED)]
        after = [item for item in found if query.after is None or (item.created_at, item.id) > query.after]
        return sorted(after, key=lambda item: (item.created_at, item.id))[: query.limit]

    async def inbox_item(self, principal: Principal, item_id: str) -> InboxItem:
        organisation, item = self.inbox_world.items.get(item_id, ("", None))
        if item is None or organisation != principal.organisation:
            raise InboxItemNotFound(item_id)
        return item

    async def inbox_counts(self, principal: Principal) -> InboxCounts:
        counted = {view: len(await self.inbox(principal, InboxQuery(view=view, limit=99))) for view in InboxView}
        return InboxCounts(needs_you=counted[InboxView.NEEDS_YOU], mine=0, snoozed=counted[InboxView.SNOOZED])

    async def comment(self, principal: Principal, session_id: str, comment_id: str) -> Comment:
        del principal
        found = self.inbox_world.comments.get(comment_id)
        if found is None or found.session_id != session_id:
            raise CommentNotFound(comment_id)
        return found

    async def comments(
        self,
        principal: Principal,
        session_id: str,
        *,
        limit: int,
        after: tuple[datetime, str] | None,
        is_sent: bool | None = None,
    ) -> Sequence[Comment]:
        del principal
        found = [one for one in self.inbox_world.comments.values() if one.session_id == session_id]
        found = [one for one in found if is_sent in {None, one.sent_event_id is not None}]
        return [one for one in found if after is None or (one.created_at, one.id) > after][:limit]

    async def session_template(self, principal: Principal, template_id: str) -> StoredSessionTemplate:
        found = self.inbox_world.templates.get(template_id)
        if found is None or found.organisation != principal.organisation:
            raise NotFound("session template", template_id)
        return found

    async def session_templates(self, principal: Principal, page: Page) -> Sequence[StoredSessionTemplate]:
        found = [one for one in self.inbox_world.templates.values() if one.organisation == principal.organisation]
        return [one for one in found if page.include_archived or one.archived_at is None][: page.limit]

    async def find_pinned_sessions(self, principal: Principal, session_ids: Sequence[str]) -> frozenset[str]:
        return frozenset(one for one in session_ids if (principal.id, one) in self.inbox_world.pins)


class FakeInboxUnit(FakeInboxReads):
    async def update_inbox_item(self, principal: Principal, item_id: str, update: InboxUpdate) -> InboxItem:
        item = await self.inbox_item(principal, item_id)
        if update.changes_assignee:
            name = None if update.assignee_id is None else f"name of {update.assignee_id}"
            item = replace(item, assignee_id=update.assignee_id, assignee_name=name)
        if update.changes_snooze:
            item = replace(item, snoozed_until=update.snoozed_until)
        self.inbox_world.items[item_id] = (principal.organisation, item)
        return item

    async def dismiss_inbox_item(self, principal: Principal, item_id: str) -> str:
        item = await self.inbox_item(principal, item_id)
        del self.inbox_world.items[item_id]
        return item.session.id

    async def record_merge_conflict(
        self, principal: Principal, session_id: str, project_id: str, conflict: ConflictingMerge
    ) -> None:
        del principal
        self.inbox_world.conflicts.append((session_id, project_id, str(conflict.branch)))

    async def remove_merge_conflict(self, session_id: str, project_id: str, branch: str) -> bool:
        known = (session_id, project_id, branch) in self.inbox_world.conflicts
        self.inbox_world.conflicts = [one for one in self.inbox_world.conflicts if one[2] != branch]
        return known

    async def add_comment(self, principal: Principal, session_id: str, comment: NewComment) -> Comment:
        now = self.inbox_world.now()
        added = Comment(
            id=ids.new_id(ids.COMMENT),
            session_id=session_id,
            author_id=principal.id,
            author_name=principal.name,
            turn_id=comment.turn_id,
            tree=comment.tree,
            lines=comment.lines,
            code=comment.code,
            body=comment.body,
            sent_event_id=None,
            sent_at=None,
            created_at=now,
            updated_at=now,
        )
        self.inbox_world.comments[added.id] = added
        return added

    async def update_comment(
        self, principal: Principal, session_id: str, comment_id: str, change: Callable[[Comment], str]
    ) -> Comment:
        found = await self.comment(principal, session_id, comment_id)
        self.inbox_world.comments[comment_id] = changed = replace(found, body=change(found))
        return changed

    async def delete_comment(self, principal: Principal, session_id: str, comment_id: str) -> None:
        del principal, session_id
        self.inbox_world.comments.pop(comment_id, None)

    async def lock_drafts(
        self, principal: Principal, session_id: str, comment_ids: Sequence[str] | None
    ) -> Sequence[Comment]:
        del principal
        mine = [one for one in self.inbox_world.comments.values() if one.session_id == session_id]
        return [one for one in mine if one.sent_event_id is None and (comment_ids is None or one.id in comment_ids)]

    async def mark_comments_sent(
        self, principal: Principal, session_id: str, drafts: Sequence[Comment], position: Position
    ) -> Sequence[Comment]:
        del principal, session_id
        sent = [replace(one, sent_event_id=position.event.id, sent_at=self.inbox_world.now()) for one in drafts]
        self.inbox_world.comments |= {one.id: one for one in sent}
        return sent

    async def create_session_template(
        self, principal: Principal, definition: SessionTemplateDefinition
    ) -> StoredSessionTemplate:
        now = self.inbox_world.now()
        made = StoredSessionTemplate(
            id=ids.new_id(ids.SESSION_TEMPLATE),
            organisation=principal.organisation,
            name=definition.name,
            description=definition.description,
            session=definition.session,
            created_by=principal.id,
            created_at=now,
            updated_at=now,
            archived_at=None,
        )
        self.inbox_world.templates[made.id] = made
        return made

    async def update_session_template(
        self,
        principal: Principal,
        template_id: str,
        change: Callable[[StoredSessionTemplate], SessionTemplateDefinition],
    ) -> StoredSessionTemplate:
        found = await self.session_template(principal, template_id)
        new = change(found)
        changed = replace(found, name=new.name, description=new.description, session=new.session)
        self.inbox_world.templates[template_id] = changed
        return changed

    async def archive_session_template(self, principal: Principal, template_id: str) -> StoredSessionTemplate:
        found = await self.session_template(principal, template_id)
        self.inbox_world.templates[template_id] = archived = replace(found, archived_at=self.inbox_world.now())
        return archived

    async def pin_session(self, principal: Principal, session_id: str) -> bool:
        self.inbox_world.pins.add((principal.id, session_id))
        return True

    async def unpin_session(self, principal: Principal, session_id: str) -> bool:
        self.inbox_world.pins.discard((principal.id, session_id))
        return True
