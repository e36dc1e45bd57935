"""Starts the children of a session, and connects them with the turn that waits for them.

A group and all its members are created in one transaction, which checks that the worker still has the parent's turn. A
call that is repeated after a crash finds its group.
"""

from collections.abc import Sequence
from dataclasses import replace

import orjson

from footplate.domain import ids
from footplate.domain.agents.agents_and_config import ALWAYS_ALLOW, ResolvedConfig
from footplate.domain.errors import Conflict, Fenced, InvalidRequest, NotFound, Refused
from footplate.domain.files.snapshots import ChildFiles
from footplate.domain.json import JsonObject, clean_object
from footplate.domain.organisations.limits import LimitName, OrganisationLimits
from footplate.domain.organisations.principals import Principal
from footplate.domain.policy.permissions import PermissionOutcome, read_rules
from footplate.domain.ports.api import Input
from footplate.domain.ports.engine import Claim
from footplate.domain.sessions import events, groups
from footplate.domain.sessions.events import Event
from footplate.domain.sessions.groups import ChildLimits, ChildRequest, GroupResult, SpawnedGroup
from footplate.domain.sessions.steps import PauseReason, Playback, WaitFor
from footplate.domain.sessions.turns import SessionToWake, WhenBusy
from footplate.store.database import SQL, Connection, Database, bind
from footplate.store.log.files.file_snapshots import load_files_at, tree_ids
from footplate.store.log.inputs import append_events, append_inputs
from footplate.store.log.session_groups.member_ends import load_result
from footplate.store.log.step_changes import created_event
from footplate.store.log.step_queue import playback_event
from footplate.store.object_store import Objects
from footplate.store.resources.limits import LimitStore, check_limit
from footplate.store.row_mapping import Row, load_agent


class TooManySessions(Refused):
    code = "too_many_sessions"


class ChildSessionStore:
    """Starts groups of children for turns, and finds their results."""

    def __init__(
        self,
        database: Database,
        objects: Objects,
        *,
        limits: LimitStore | None = None,
        child_limits: ChildLimits | None = None,
    ) -> None:
        self._database = database
        self._objects = objects
        self._limits = limits or LimitStore(database)
        self._child_limits = child_limits or ChildLimits()

    async def spawn(
        self,
        claim: Claim,
        call_id: str,
        requests: Sequence[ChildRequest],
        *,
        max_running: int | None = None,
        wait_for: WaitFor = WaitFor.ALL,
        picks_one: bool = False,
    ) -> tuple[SpawnedGroup, Sequence[SessionToWake]]:
        """Creates the group of a call, unless an earlier attempt did. Returns the sessions to wake after that."""
        limits = await self._limits.load(claim.organisation)
        async with self._database.transaction() as connection:
            parent = await connection.fetchrow(SQL["group_parent"], claim.session_id, claim.epoch, claim.turn_id)
            if parent is None:
                raise Fenced(f"Another worker holds session {claim.session_id}.")
            if (found := await connection.fetchrow(SQL["group_by_call"], claim.session_id, call_id)) is not None:
                group = SpawnedGroup(
                    id=found["id"], session_ids=tuple(found["session_ids"]), names=tuple(found["names"])
                )
                return group, ()
            await self._check_limits(connection, limits, parent, requests)
            ending: JsonObject = {"wait_for": wait_for.value, "picks_one": picks_one}
            return await _create_group(
                connection, claim, parent, call_id, requests, max_running=max_running, ending=ending
            )

    async def find_result(self, claim: Claim, group_id: str) -> GroupResult | None:
        async with self._database.connection() as connection:
            group = await connection.fetchrow(SQL["group"], group_id, claim.session_id)
            return None if group is None else await load_result(connection, group)

    async def wait(self, claim: Claim, call_id: str, group_id: str) -> GroupResult | None:
        async with self._database.transaction() as connection:
            group = await connection.fetchrow(SQL["wait_for_group"], group_id, claim.session_id, call_id, claim.turn_id)
            if group is None:
                raise NotFound("group", group_id)
            await _check_fence(connection, claim)
            waits = group["ended_at"] is None and group["parent_turn_id"] == claim.turn_id
            return None if waits else await load_result(connection, group)

    async def load_files(self, claim: Claim, session_ids: Sequence[str]) -> Sequence[ChildFiles]:
        trees = tree_ids([project.id for project in claim.config.projects])
        found = []
        async with self._database.connection() as connection:
            for session_id in session_ids:
                start = await load_files_at(connection, session_id, trees, seq=1)
                found.append(ChildFiles(session_id, start, await load_files_at(connection, session_id, trees)))
        return found

    async def send_message(self, claim: Claim, session_id: str, text: str, call_id: str) -> bool:
        """Sends a message to a child, once for each call. Returns whether to wake the child."""
        principal = _author_of(claim)
        async with self._database.transaction() as connection:
            arguments = session_id, claim.session_id, claim.organisation
            if await connection.fetchval(SQL["member_of_parent"], *arguments) is None:
                raise NotFound("session", session_id)
            await connection.fetchrow(SQL["lock_head"], session_id, claim.organisation)
            await _check_fence(connection, claim)
            if await connection.fetchval(SQL["message_of_call"], session_id, call_id):
                return False
            sent = Input(
                type=events.USER_MESSAGE,
                body={"content": [events.text_block(text)], "sent_by_call": call_id},
                when_busy=WhenBusy.QUEUE,
            )
            accepted = await append_inputs(connection, self._objects, principal, session_id, [sent])
            return accepted.wake

    async def _check_limits(
        self, connection: Connection, limits: OrganisationLimits, parent: Row, requests: Sequence[ChildRequest]
    ) -> None:
        if not 0 < len(requests) <= groups.MAX_MEMBERS:
            raise InvalidRequest(f"A group has 1 to {groups.MAX_MEMBERS} sessions.", help_text="Start fewer sessions.")
        depth, most = self._child_limits.max_depth, self._child_limits.max_sessions
        if parent["child_depth"] > depth:
            raise TooManySessions(
                f"This session cannot start others, because it is itself {depth} levels below the first one.",
                help_text="Do the work in this session.",
            )
        await connection.execute(SQL["lock_descendants"], parent["root_id"])
        living = await connection.fetchval(SQL["living_descendants"], parent["root_id"])
        if living + len(requests) > most:
            raise TooManySessions(
                f"At most {most} sessions that one session has started may exist at a time, and {living} have not "
                f"ended.",
                help_text="Wait until some have ended, or start fewer.",
            )
        author = _principal_of(parent)
        owner = replace(author, id=parent["owner"] or parent["principal"])
        await check_limit(connection, limits, owner, LimitName.SESSIONS, adding=len(requests))
        queued = sum(len(request.steps) for request in requests)
        await check_limit(connection, limits, author, LimitName.QUEUED_STEPS, adding=queued)


async def _check_fence(connection: Connection, claim: Claim) -> None:
    """Raises `Fenced` unless the worker still has the parent's turn. Locks the parent's head, so it comes after the
    locks of a child and a group.
    """
    head = await connection.fetchrow(SQL["lock_epoch"], claim.session_id, claim.epoch)
    if head is None or head["turn_id"] != claim.turn_id:
        raise Fenced(f"Another worker holds session {claim.session_id}.")


async def _create_group(
    connection: Connection,
    claim: Claim,
    parent: Row,
    call_id: str,
    requests: Sequence[ChildRequest],
    *,
    max_running: int | None,
    ending: JsonObject,
) -> tuple[SpawnedGroup, Sequence[SessionToWake]]:
    organisation, principal_id = claim.organisation, _principal_of(parent).id
    group_id = ids.new_id(ids.GROUP)
    session_ids = [ids.new_id(ids.SESSION) for _ in requests]
    started = min(max_running or groups.DEFAULT_MAX_RUNNING, len(requests))
    agents = await _load_agents(connection, organisation, requests)
    await connection.execute(
        *bind(
            "insert_group",
            id=group_id,
            organisation=organisation,
            principal=principal_id,
            parent_session_id=claim.session_id,
            parent_turn_id=claim.turn_id,
            root_session_id=parent["root_id"],
            started_by=call_id,
            depth=parent["child_depth"],
            max_running=max_running or groups.DEFAULT_MAX_RUNNING,
            definition=ending,
            total=len(requests),
            started=started,
        )
    )
    await connection.execute(
        *bind(
            "insert_children",
            parent_id=claim.session_id,
            group_id=group_id,
            principal=principal_id,
            ids=session_ids,
            agents=[None if request.agent_id is None else agents[request.agent_id] for request in requests],
            titles=[
                request.title or request.name or f"{number} of {len(requests)}"
                for number, request in enumerate(requests, 1)
            ],
            names=[request.name for request in requests],
            started=started,
            trees=tree_ids(parent["project_ids"]),
            context=parent["turn_context"],
            permissions=[
                None if request.agent_id is None else _restrict(parent["permissions"], claim.config)
                for request in requests
            ],
        )
    )
    for number, (session_id, request) in enumerate(zip(session_ids, requests, strict=True)):
        created = [created_event(definition, None) for definition in request.steps]
        waits: list[Event] = []
        if number >= started:
            waits = [playback_event(Playback(playing=False, reason=PauseReason.GROUP))]
        positions = await append_events(connection, organisation, principal_id, session_id, [*created, *waits])
        overrides = parent["turn_overrides"] if request.agent_id is None else {}
        for position, definition in zip(positions, request.steps, strict=False):
            await connection.execute(
                *bind(
                    "insert_step",
                    session_id=session_id,
                    position=position.seq,
                    organisation=organisation,
                    kind=definition.kind,
                    event_id=position.event.id,
                    overrides=overrides,
                    traceparent=claim.trace,
                    name=definition.name,
                    definition=definition.dump(),
                )
            )
    await connection.execute(SQL["wake_children"], session_ids[:started])
    group = SpawnedGroup(id=group_id, session_ids=tuple(session_ids), names=tuple(request.name for request in requests))
    priority = parent["head_priority"]
    return group, [SessionToWake(organisation, session_id, priority) for session_id in session_ids[:started]]


async def _load_agents(connection: Connection, organisation: str, requests: Sequence[ChildRequest]) -> dict[str, str]:
    """Returns the agents that the requests name, as sessions store them."""
    found: dict[str, str] = {}
    for agent_id in {request.agent_id for request in requests} - {None}:
        row = await connection.fetchrow(SQL["agent"], agent_id, organisation)
        if row is None:
            raise NotFound("agent", str(agent_id))
        agent = load_agent(row)
        if agent.archived_at is not None:
            raise Conflict(f"Agent {agent.id!r} is archived.", help_text="Choose another agent.")
        if agent.definition.get("multiagent"):
            raise Conflict(
                f"Agent {agent.id!r} has subagents, so a child session cannot use it by its ID.",
                help_text="Choose another agent.",
            )
        snapshot: JsonObject = {"id": agent.id, "type": "agent", "version": agent.version, "name": agent.name}
        found[agent.id] = orjson.dumps(clean_object({**snapshot, **agent.definition})).decode()
    return found


def _restrict(permissions: JsonObject, config: ResolvedConfig) -> str:
    """Returns the session's rules with what the parent's agent denies or asks for, for a child with another agent."""
    own, inherited = read_rules(permissions), read_rules(config.permissions)
    asked = [rule for rule, policy in config.policies.items() if policy != ALWAYS_ALLOW]
    deny = [*own.get(PermissionOutcome.DENY, []), *inherited.get(PermissionOutcome.DENY, [])]
    ask = [*own.get(PermissionOutcome.ASK, []), *inherited.get(PermissionOutcome.ASK, []), *asked]
    rules = {PermissionOutcome.DENY: deny, PermissionOutcome.ASK: ask}
    added = {outcome.value: list(dict.fromkeys(texts)) for outcome, texts in rules.items() if texts}
    return orjson.dumps({**permissions, **added}).decode()


def _principal_of(parent: Row) -> Principal:
    """Returns the principal in whose name the children run: the author of the parent's turn."""
    principal_id = parent["turn_principal"] or parent["principal"]
    return Principal(parent["organisation"], principal_id, parent["principal_name"] or "", frozenset())


def _author_of(claim: Claim) -> Principal:
    author = claim.author
    return Principal(
        claim.organisation, author.id if author else "", (author.name if author else None) or "", frozenset()
    )
