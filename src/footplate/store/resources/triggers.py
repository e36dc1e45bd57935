"""Stores triggers, and acts on the deliveries to them.

The row of a delivery is inserted in the transaction that creates its session or adds its steps. The lock of the
trigger's row orders the deliveries to one trigger: of two that have the same id, the second one finds the row of the
first. The secrets verify signatures, so they are stored as they are. No method but `read_keys` returns a stored secret.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import orjson

from footplate.domain import audit, ids
from footplate.domain.errors import Conflict, InvalidRequest, NotFound, Permanent, Refused
from footplate.domain.json import JsonObject, clean_object
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import Permission, check_permission, restrict_roles
from footplate.domain.organisations.visibility import Audience, ViewFilter
from footplate.domain.organisations.webhooks import new_secret
from footplate.domain.pagination import Page
from footplate.domain.ports.api import AcceptedInputs, UnitOfWork
from footplate.domain.sessions import deployments, triggers
from footplate.domain.sessions.deployments import CheckContext, RunError, RunErrorType, SessionTemplate
from footplate.domain.sessions.triggers import (
    DeliveryOutcome,
    SignedDelivery,
    Trigger,
    TriggerDefinition,
    TriggerDelivery,
    TriggerKeys,
    TriggerLimitExceeded,
    TriggerUnit,
)
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.page_query import build_page_query
from footplate.store.resources import deployment_runs, members
from footplate.store.resources.audit_trail import AuditUnitOfWork
from footplate.store.row_mapping import Row


class TriggerUnitOfWork(AuditUnitOfWork, TriggerUnit):
    """The methods of a unit of work that change triggers."""

    _connection: Connection

    async def create_trigger(self, principal: Principal, definition: TriggerDefinition) -> tuple[Trigger, str]:
        await self._connection.execute(SQL["lock_limit"], f"triggers/{principal.organisation}")
        count = await self._connection.fetchval(SQL["count_triggers"], principal.organisation)
        if count >= triggers.MAX_TRIGGERS:
            raise Conflict(
                f"The organisation has {count} triggers, and cannot have more.",
                help_text="Remove those that you do not need, with `footplate triggers rm`.",
            )
        await self._check_trigger(principal, definition)
        secret = new_secret()
        with _unique_name(definition.name):
            row = await self._connection.fetchrow(
                *bind(
                    "insert_trigger",
                    id=ids.new_id(ids.TRIGGER),
                    organisation=principal.organisation,
                    principal=principal.id,
                    roles=sorted(principal.roles),
                    secret=secret,
                    **_columns(definition),
                )
            )
        return await self._record_trigger(principal, "trigger.create", row), secret

    async def update_trigger(
        self, principal: Principal, trigger_id: str, change: Callable[[Trigger], TriggerDefinition]
    ) -> Trigger:
        definition = change(load_trigger(await self._lock_trigger(principal, trigger_id)))
        await self._check_trigger(principal, definition)
        with _unique_name(definition.name):
            row = await self._connection.fetchrow(
                *bind(
                    "update_trigger",
                    id=trigger_id,
                    principal=principal.id,
                    roles=sorted(principal.roles),
                    **_columns(definition),
                )
            )
        return await self._record_trigger(principal, "trigger.update", row)

    async def archive_trigger(self, principal: Principal, trigger_id: str) -> Trigger:
        found = await self._lock_trigger(principal, trigger_id, may_be_archived=True)
        if found["archived_at"] is not None:
            return load_trigger(found)
        row = await self._connection.fetchrow(SQL["archive_trigger"], trigger_id)
        return await self._record_trigger(principal, "trigger.archive", row)

    async def rotate_trigger_secret(
        self, principal: Principal, trigger_id: str, *, overlap: timedelta
    ) -> tuple[Trigger, str]:
        await self._lock_trigger(principal, trigger_id)
        secret = new_secret()
        row = await self._connection.fetchrow(SQL["replace_trigger_secret"], trigger_id, secret, overlap)
        return await self._record_trigger(principal, "trigger.rotate", row), secret

    async def _lock_trigger(self, principal: Principal, trigger_id: str, *, may_be_archived: bool = False) -> Row:
        row = await self._connection.fetchrow(SQL["lock_trigger"], trigger_id, principal.organisation)
        audiences = ViewFilter.of(principal).audiences
        if (
            row is None
            or await self._connection.fetchrow(SQL["trigger"], trigger_id, principal.organisation, audiences) is None
        ):
            raise NotFound("trigger", trigger_id)
        if row["archived_at"] is not None and not may_be_archived:
            raise InvalidRequest(f"Trigger {trigger_id!r} is archived.", help_text="Create a new trigger.")
        return row

    async def _check_trigger(self, principal: Principal, definition: TriggerDefinition) -> None:
        """Raises unless a delivery could act now, which each delivery checks again."""
        await members.check_audience(self._connection, principal, definition.audience)
        if definition.session_id is not None:
            await _check_session(self._connection, principal, definition.session_id)
        if definition.environment_id is not None:
            await deployment_runs.check_environment(self._connection, principal, definition.environment_id)
            await deployment_runs.check_projects(self._connection, principal, definition.template)

    async def _record_trigger(self, principal: Principal, action: str, row: Row | None) -> Trigger:
        assert row is not None
        trigger = load_trigger(row)
        details: JsonObject = {"session": trigger.definition.session_id, "paused": trigger.definition.is_paused}
        if permissions := trigger.definition.template.permissions:
            details["permissions"] = permissions
        session_id = trigger.definition.session_id
        await self.record(principal, audit.build_change_entry(action, trigger.id, details, session=session_id))
        return trigger


@dataclass(frozen=True, slots=True)
class ProcessedDelivery:
    delivery: TriggerDelivery
    accepted: AcceptedInputs | None = None
    """The change to announce after the commit."""


async def process_delivery(
    unit: UnitOfWork,
    connection: Connection,
    organisation: str,
    signed: SignedDelivery,
    check_context: CheckContext,
) -> ProcessedDelivery:
    """Acts on a delivery, unless it did before. Raises `NotFound` if the trigger was archived since it was verified."""
    row = await connection.fetchrow(SQL["lock_trigger"], signed.trigger_id, organisation)
    if row is None or row["archived_at"] is not None:
        raise NotFound("trigger", signed.trigger_id)
    trigger = load_trigger(row)
    found = await connection.fetchrow(SQL["trigger_delivery"], signed.trigger_id, signed.delivery_id)
    if found is not None and found["outcome"] != DeliveryOutcome.FAILED:
        if found["body_hash"] != signed.body_hash:
            raise Conflict(
                f"A delivery with the ID {signed.delivery_id!r} and another body was received before.",
                help_text="Give each delivery an ID of its own, and send the same body when you retry.",
            )
        return ProcessedDelivery(load_delivery(found))
    if trigger.definition.is_paused:
        raise Conflict("This trigger is paused.", help_text="Send the delivery again after it has been resumed.")
    recent = await connection.fetchrow(SQL["count_recent_deliveries"], signed.trigger_id)
    assert recent is not None
    if recent["number"] >= trigger.definition.max_per_minute:
        raise TriggerLimitExceeded(trigger.definition.max_per_minute, recent["seconds"])
    session_id: str | None = None
    accepted: AcceptedInputs | None = None
    error: RunError | None = None
    outcome = DeliveryOutcome.FAILED
    try:
        async with connection.transaction():
            outcome, session_id, accepted = await _act(
                unit, connection, trigger, load_acting_principal(row), signed.payload, check_context
            )
    except (deployment_runs.RunRefused, Refused, Permanent) as refused:
        error = deployment_runs.describe_refusal(refused)
    stored = await connection.fetchrow(
        *bind(
            "record_trigger_delivery",
            id=ids.new_id(ids.TRIGGER_DELIVERY),
            trigger_id=signed.trigger_id,
            organisation=organisation,
            delivery_id=signed.delivery_id,
            body_hash=signed.body_hash,
            outcome=outcome,
            session_id=session_id,
            error=None if error is None else error.dump(),
        )
    )
    assert stored is not None
    return ProcessedDelivery(load_delivery(stored), accepted)


async def _act(
    unit: UnitOfWork,
    connection: Connection,
    trigger: Trigger,
    principal: Principal | None,
    payload: JsonObject,
    check_context: CheckContext,
) -> tuple[DeliveryOutcome, str | None, AcceptedInputs | None]:
    if principal is None:
        raise deployment_runs.RunRefused(
            RunErrorType.UNKNOWN,
            f"The member {trigger.principal_id!r}, in whose name this trigger acts, is disabled. Another member can "
            f"take it over: `footplate triggers update {trigger.id} --resume`.",
        )
    definition = trigger.definition
    check_permission(principal, Permission.OPERATE)
    if not triggers.is_met(definition, payload):
        return DeliveryOutcome.IGNORED, None, None
    work = triggers.build_work(definition, payload)
    if definition.session_id is not None:
        await _check_session(connection, principal, definition.session_id)
        await deployment_runs.check_files_of(connection, principal, definition.template)
        _, accepted = await unit.add_steps(principal, definition.session_id, work.steps, before=None)
        return DeliveryOutcome.STEPS_ADDED, definition.session_id, accepted
    session_id, accepted = await deployment_runs.create_from_template(
        unit,
        connection,
        principal,
        replace(definition.template, steps=work.steps),
        environment_id=str(definition.environment_id),
        title=work.title,
        metadata=definition.metadata,
        audience=definition.audience,
        check_context=check_context,
    )
    return DeliveryOutcome.SESSION_CREATED, session_id, accepted


async def _check_session(connection: Connection, principal: Principal, session_id: str) -> None:
    view = ViewFilter.of(principal)
    visible = await connection.fetch(
        SQL["visible_sessions"], [session_id], principal.organisation, view.audiences, view.project_ids
    )
    if not visible:
        raise NotFound("session", session_id)


async def read_trigger(database: Database, principal: Principal, trigger_id: str) -> Trigger:
    row = await database.fetchrow("trigger", trigger_id, principal.organisation, ViewFilter.of(principal).audiences)
    if row is None:
        raise NotFound("trigger", trigger_id)
    return load_trigger(row)


async def read_triggers(database: Database, principal: Principal, page: Page) -> Sequence[Trigger]:
    sql, arguments = build_page_query("triggers", principal, page, {})
    async with database.connection() as connection:
        return [load_trigger(row) for row in await connection.fetch(sql, *arguments)]


async def read_deliveries(
    database: Database, principal: Principal, trigger_id: str, page: Page, outcome: DeliveryOutcome | None
) -> Sequence[TriggerDelivery]:
    await read_trigger(database, principal, trigger_id)
    where: dict[str, Any] = {"s.trigger_id": trigger_id}
    if outcome is not None:
        where["s.outcome"] = outcome
    sql, arguments = build_page_query("trigger_deliveries", principal, page, where)
    async with database.connection() as connection:
        return [load_delivery(row) for row in await connection.fetch(sql, *arguments)]


async def read_keys(database: Database, trigger_id: str) -> TriggerKeys | None:
    row = await database.fetchrow("trigger_keys", trigger_id)
    if row is None:
        return None
    expires = row["old_secret_expires_at"]
    is_old_valid = expires is not None and expires > datetime.now(UTC)
    return TriggerKeys(
        organisation=row["organisation"],
        secrets=[row["secret"], *([row["old_secret"]] if is_old_valid else [])],
        principal=load_acting_principal(row),
    )


def load_acting_principal(row: Row) -> Principal | None:
    """Returns the principal in whose name deliveries act, with the roles that the API key had and the member has now.
    None: the member is disabled.
    """
    if row["acting_id"] is None:
        return None
    roles = restrict_roles(row["roles"], row["acting_roles"])
    return Principal(row["organisation"], row["acting_id"], row["acting_name"], roles, frozenset(row["acting_teams"]))


def load_trigger(row: Row) -> Trigger:
    definition = TriggerDefinition(
        name=row["name"],
        template=SessionTemplate.load(row["definition"]),
        session_id=row["session_id"],
        environment_id=row["environment_id"],
        title=row["title"],
        condition=row["condition"],
        max_per_minute=row["max_per_minute"],
        description=row["description"],
        metadata=row["metadata"],
        audience=Audience.load(row["visible_to"]),
        is_paused=row["paused"],
    )
    return Trigger(
        id=row["id"],
        organisation=row["organisation"],
        definition=definition,
        principal_id=row["principal"],
        owner_id=row["owner"],
        old_secret_expires_at=row["old_secret_expires_at"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        archived_at=row["archived_at"],
    )


def load_delivery(row: Row) -> TriggerDelivery:
    error = row["error"]
    return TriggerDelivery(
        id=row["id"],
        trigger_id=row["trigger_id"],
        delivery_id=row["delivery_id"],
        outcome=DeliveryOutcome(row["outcome"]),
        session_id=row["session_id"],
        error=None if error is None else RunError(RunErrorType(error["type"]), error["message"]),
        attempts=row["attempts"],
        created_at=row["created_at"],
        attempted_at=row["attempted_at"],
    )


def _columns(definition: TriggerDefinition) -> dict[str, object]:
    """Returns the columns of what a member defines."""
    template = clean_object(definition.template.dump())
    if len(orjson.dumps(template)) > deployments.MAX_DEFINITION_BYTES:
        raise InvalidRequest(
            f"The steps of a trigger must not exceed {deployments.MAX_DEFINITION_BYTES} bytes in all.",
            help_text="Upload large content as a file, and refer to it.",
        )
    return {
        "name": definition.name,
        "description": definition.description,
        "session_id": definition.session_id,
        "environment_id": definition.environment_id,
        "title": definition.title,
        "definition": template,
        "metadata": definition.metadata,
        "condition": definition.condition,
        "max_per_minute": definition.max_per_minute,
        "visible_to": definition.audience.dump(),
        "paused": definition.is_paused,
    }


@contextmanager
def _unique_name(name: str) -> Iterator[None]:
    try:
        yield
    except asyncpg.UniqueViolationError:
        raise Conflict(
            f"There is already a trigger with the name {name!r}.",
            help_text="Choose another name, change that one, or replace its secret: footplate triggers rotate",
        ) from None
