"""The audit trail: entries are written with the changes that they record, and a modified sealed entry is detected."""

from dataclasses import replace

import asyncpg
import pytest

from footplate.domain import audit
from footplate.domain.audit import AuditFilter
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.webhooks import WebhookFormat
from footplate.domain.pagination import Page
from footplate.domain.policy.permissions import Decision, Layer, PermissionOutcome
from footplate.domain.policy.policy_replay import CallFilter
from footplate.domain.ports.api import Input
from footplate.domain.sessions import events
from footplate.domain.sessions.turns import TurnOutcome as Ending
from footplate.domain.sessions.turns import TurnStatus
from footplate.store.resources.api_keys import ApiKeys
from footplate.store.resources.audit_trail import AuditSealing, HookRunRecorder, verify_trail

from .cell import Cell, awaiting, new_principal

DENY = Decision(PermissionOutcome.DENY, "because of a secret", "Bash(rm *)", Layer.PROJECT)
OLDEST = Page(limit=50, order="asc")


async def deny_commands(cell: Cell, principal: Principal, *commands: str) -> str:
    """Creates a session in which these commands were denied, and returns its id."""
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    for command in commands:
        use = events.tool_use("bash", {"command": command}, call_id=command, decision=DENY)
        await cell.turns.append(claim, [use])
    await cell.turns.finish(claim, Ending(status=TurnStatus.COMPLETED))
    return session_id


async def tamper(cell: Cell, statement: str, *values: object) -> None:
    """Executes a statement as the owner of the database, who can bypass its triggers."""
    async with cell.database.connection() as connection, connection.transaction():
        await connection.execute("set local session_replication_role = 'replica'")
        await connection.execute(statement, *values)


async def faults(cell: Cell, principal: Principal) -> list[str]:
    return [*(await verify_trail(cell.database, principal.organisation)).faults]


async def test_decisions_and_policies_are_stored_and_sealed(cell: Cell) -> None:
    principal, sealing = new_principal(), AuditSealing(cell.database)
    async with cell.units.unit(principal, None) as unit:
        await unit.set_policy(principal, {"deny": ["Bash(rm *)"]})
    session_id = await deny_commands(cell, principal, "rm a", "rm b")
    found = await cell.reads.audit(principal, OLDEST, AuditFilter())
    assert [entry.kind for entry in found] == ["policy", "decision", "decision"]
    first = found[1]
    assert (first.outcome, first.tool, first.layer, first.session) == ("deny", "bash", "project", session_id)
    assert first.content == {"rule": "Bash(rm *)", "reason": "because of a secret"}
    assert first.input_hash == audit.hash_json({"command": "rm a"})
    assert await cell.reads.audit(new_principal(), OLDEST, AuditFilter()) == []
    assert len(await cell.reads.audit(principal, OLDEST, AuditFilter(kind="decision", session=session_id))) == 2
    assert (await verify_trail(cell.database, principal.organisation)).unsealed == 3
    await sealing.run()
    await deny_commands(cell, principal, "rm c")
    await sealing.run()
    await sealing.run()
    checked = await cell.reads.verify_audit(principal)
    assert (checked.entries, checked.batches, checked.unsealed, checked.faults) == (4, 2, 0, [])


@pytest.mark.parametrize(
    "statement",
    [
        "update audit set outcome = 'allow' where id = $1",
        "update audit set content = '{\"rule\": null}' where id = $1",
        "update audit set created_at = created_at - interval '1 day' where id = $1",
        "delete from audit where id = $1",
        "update audit set batch = batch + 7 where id = $1",
        "delete from audit_batches where number = (select batch from audit where id = $1)",
    ],
)
async def test_a_modified_entry_is_detected(cell: Cell, statement: str) -> None:
    principal, sealing = new_principal(), AuditSealing(cell.database)
    for command in ("rm a", "rm b", "rm c"):
        await deny_commands(cell, principal, command)
        await sealing.run()
    assert await faults(cell, principal) == []
    target = (await cell.reads.audit(principal, OLDEST, AuditFilter()))[1].id
    if "audit_batches" not in statement:
        with pytest.raises(asyncpg.RaiseError, match="never changed"):
            async with cell.database.connection() as connection:
                await connection.execute(statement, target)
    organisation = " and organisation = $2" if "audit_batches" in statement else ""
    await tamper(cell, statement + organisation, target, *([principal.organisation] if organisation else []))
    assert await faults(cell, principal) != []


async def test_a_truncated_trail_does_not_match_the_saved_head(cell: Cell) -> None:
    principal, sealing = new_principal(), AuditSealing(cell.database)
    heads = []
    for command in ("rm a", "rm b"):
        await deny_commands(cell, principal, command)
        await sealing.run()
        heads.append((await cell.reads.verify_audit(principal)).head)
    for head in heads:
        assert (await cell.reads.verify_audit(principal, head)).faults == []
    await tamper(cell, "delete from audit where organisation = $1 and batch = 2", principal.organisation)
    await tamper(cell, "delete from audit_batches where organisation = $1 and number = 2", principal.organisation)
    assert await faults(cell, principal) == []
    assert (await cell.reads.verify_audit(principal, heads[0])).faults == []
    assert len((await cell.reads.verify_audit(principal, heads[1])).faults) == 1
    await deny_commands(cell, principal, "rm c")
    await sealing.run()
    assert len((await cell.reads.verify_audit(principal, heads[1])).faults) == 1


async def test_entries_that_stay_unsealed_are_reported(cell: Cell) -> None:
    principal = new_principal()
    await deny_commands(cell, principal, "rm a", "rm b")
    assert await faults(cell, principal) == []
    old = "update audit set created_at = now() - interval '61 seconds' where organisation = $1"
    await tamper(cell, old, principal.organisation)
    (fault,) = await faults(cell, principal)
    assert fault.startswith("2 entries are not sealed, the oldest since 20")
    await AuditSealing(cell.database).run()
    assert await faults(cell, principal) == []


async def test_reordered_entries_are_detected(cell: Cell) -> None:
    principal = new_principal()
    await deny_commands(cell, principal, "rm a", "rm b")
    await AuditSealing(cell.database).run()
    first, second = await cell.reads.audit(principal, OLDEST, AuditFilter())
    for entry, number in ((first, second.number), (second, first.number)):
        await tamper(cell, "update audit set number = $2 where id = $1", entry.id, number)
    assert await faults(cell, principal) != []


async def test_characters_that_columns_refuse_are_stored_as_in_the_log(cell: Cell) -> None:
    """A model's command, and so a reason, may contain NUL characters and lone surrogates."""
    principal, odd = new_principal(), "cat a\x00b \ud800"
    session_id = await cell.session(principal, "Go.")
    claim = await cell.claim(session_id, principal)
    decision = Decision(PermissionOutcome.ASK, f"No rule allows {odd}.", None, None)
    use = events.tool_use(odd, {"command": odd}, call_id="c1", decision=decision)
    await cell.turns.append(claim, [use])
    ran = audit.build_hook_entry(
        {"reason": odd}, outcome="deny", tool="bash", layer="session", tool_input={"command": odd}
    )
    await HookRunRecorder(cell.database).record(principal.organisation, session_id, claim.turn_id, [ran])
    await AuditSealing(cell.database).run()
    assert await faults(cell, principal) == []
    decided, _ = await cell.reads.audit(principal, OLDEST, AuditFilter(session=session_id))
    (stored,) = [event for event in await cell.turns.turn_events(claim) if event.id == use.id]
    assert decided.input_hash == audit.hash_json(stored.body["input"])


async def test_a_listed_entry_has_the_name_the_title_and_the_input(cell: Cell) -> None:
    keys, organisation = ApiKeys(cell.database), new_principal().organisation
    ann, bob = [
        await keys.authenticate(await keys.create_key(organisation, name, ["admin"])) for name in ("ann", "bob")
    ]
    session_id = await cell.session(ann, "Go.")
    async with cell.units.unit(ann, None) as unit:
        await unit.update_session(ann, session_id, lambda session: replace(session, title="Release"))
    claim = await cell.claim(session_id, ann)
    ask = Decision(PermissionOutcome.ASK, "No rule allows it.")
    calls = [
        events.tool_use("bash", {"command": "make"}, call_id="a", decision=ask),
        events.mcp_tool_use("github", "merge", {"number": 7}, call_id="b", decision=ask),
    ]
    await cell.turns.append(claim, calls)
    await cell.turns.finish(claim, awaiting(*calls))
    for who, call in zip((ann, bob), calls, strict=True):
        body: JsonObject = {"tool_use_id": call.id, "result": "deny"}
        await cell.send(who, session_id, Input(type=events.USER_TOOL_CONFIRMATION, body=body))

    async def listed(**wanted: str) -> list[tuple[str | None, ...]]:
        entries = await cell.reads.audit(ann, OLDEST, AuditFilter(session=session_id, **wanted))
        assert {entry.session_title for entry in entries} <= {"Release"}
        return [(one.outcome, one.principal_name, one.tool, str(one.call_input)) for one in entries]

    made, merged = ("bash", "{'command': 'make'}"), ("github/merge", "{'number': 7}")
    decisions = [("deny", "ann", *made), ("deny", "bob", *merged)]
    assert await listed(kind="answer") == decisions
    assert await listed(member="bob") == await listed(member=bob.id) == await listed(decided_by=bob.id) == decisions[1:]
    assert await listed(decided_by="bob") == []
    assert await listed(member="ann") == [("ask", "ann", *made), ("ask", "ann", *merged), decisions[0]]
    assert await listed(decided_by=ann.id) == decisions[:1]
    assert [one[2:] for one in await listed(tool="github/merge")] == [merged, merged]
    await AuditSealing(cell.database).run()
    assert await faults(cell, ann) == []


async def test_a_deleted_session_shows_no_input_although_a_fork_has_its_events(cell: Cell) -> None:
    principal = new_principal()
    session_id = await deny_commands(cell, principal, "rm a")
    (entry,) = await cell.reads.audit(principal, OLDEST, AuditFilter(kind="decision"))
    assert entry.call_input == {"command": "rm a"}
    await cell.fork(principal, session_id)
    await cell.delete(principal, session_id)
    assert len(await cell.rows("events", session_id)) > 0
    (entry,) = await cell.reads.audit(principal, OLDEST, AuditFilter(kind="decision"))
    assert (entry.tool, entry.call_input, entry.session_title) == ("bash", None, None)
    (call,) = await cell.reads.calls(principal, CallFilter(), limit=9, after=None)
    assert call.input is None


async def test_an_entry_about_a_webhook_of_a_session_belongs_to_the_session(cell: Cell) -> None:
    principal = new_principal()
    session_id = await cell.session(principal)
    async with cell.units.unit(principal, None) as unit:
        await unit.create_webhook_endpoint(
            principal,
            url="https://hooks.example.com",
            types=(),
            session_id=session_id,
            description=None,
            webhook_format=WebhookFormat.STANDARD,
            ordered=False,
        )
    (entry,) = await cell.reads.audit(principal, OLDEST, AuditFilter(session=session_id))
    assert entry.content is not None
    assert entry.content["action"] == "webhook.create"


async def test_erased_content_does_not_break_the_chain(cell: Cell) -> None:
    principal = new_principal()
    session_id = await deny_commands(cell, principal, "rm a")
    await AuditSealing(cell.database).run()
    await cell.delete(principal, session_id)
    (entry,) = await cell.reads.audit(principal, OLDEST, AuditFilter())
    assert (entry.content, entry.outcome) == (None, "deny")
    assert await faults(cell, principal) == []


@pytest.mark.requirement("S7")
async def test_hook_runs_are_stored_and_sealed(cell: Cell) -> None:
    principal = new_principal()
    session_id = await deny_commands(cell, principal)
    content: JsonObject = {"hook_event": "Stop", "hook": "check", "reason": "more to do"}
    call: JsonObject = {"command": "rm a"}
    runs = [
        audit.build_hook_entry(
            content, outcome="deny", tool="Bash", layer="agent", tool_input=call, principal=principal.id
        ),
        audit.build_hook_entry(content, outcome="block", tool=None, layer="agent", tool_input=None),
    ]
    await HookRunRecorder(cell.database).record(principal.organisation, session_id, "turn_1", runs)
    found = await cell.reads.audit(principal, OLDEST, AuditFilter(kind="hook", session=session_id))
    assert [(one.outcome, one.tool, one.layer, one.turn, one.principal) for one in found] == [
        ("deny", "Bash", "agent", "turn_1", principal.id),
        ("block", None, "agent", "turn_1", None),
    ]
    assert found[0].input_hash == audit.hash_json({"command": "rm a"})
    assert (found[1].input_hash, found[1].content) == (None, content)
    await AuditSealing(cell.database).run()
    assert await faults(cell, principal) == []
