"""The audit trail: entries are written with the changes that they record, and a modified sealed entry is detected."""

import asyncpg
import pytest

from footplate.domain import audit, events
from footplate.domain.audit import AuditFilter
from footplate.domain.json import JsonObject
from footplate.domain.pages import Page
from footplate.domain.permissions import Decision, Layer, Outcome
from footplate.domain.principals import Principal
from footplate.domain.turns import Outcome as Ending
from footplate.domain.turns import TurnStatus
from footplate.store.audit import HookTrail, Sealing, verify

from .cell import Cell, somebody

DENY = Decision(Outcome.DENY, "because of a secret", "Bash(rm *)", Layer.PROJECT)
OLDEST = Page(limit=50, order="asc")


async def decide(cell: Cell, who: Principal, *commands: str) -> str:
    """Creates a session in which these commands were denied, and returns its id."""
    session_id = await cell.session(who, "Go.")
    claim = await cell.claim(session_id, who)
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


async def faults(cell: Cell, who: Principal) -> list[str]:
    return [*(await verify(cell.database, who.organisation)).faults]


async def test_decisions_answers_and_policies_are_kept_and_sealed(cell: Cell) -> None:
    who, sealing = somebody(), Sealing(cell.database)
    async with cell.units.unit(who, None) as unit:
        await unit.set_policy(who, {"deny": ["Bash(rm *)"]})
    session_id = await decide(cell, who, "rm a", "rm b")
    found = await cell.reads.audit(who, OLDEST, AuditFilter())
    assert [entry.kind for entry in found] == ["policy", "decision", "decision"]
    first = found[1]
    assert (first.outcome, first.tool, first.layer, first.session) == ("deny", "bash", "project", session_id)
    assert first.content == {"rule": "Bash(rm *)", "reason": "because of a secret"}
    assert first.input_hash == audit.hashed({"command": "rm a"})
    assert await cell.reads.audit(somebody(), OLDEST, AuditFilter()) == []
    assert len(await cell.reads.audit(who, OLDEST, AuditFilter(kind="decision", session=session_id))) == 2
    assert (await verify(cell.database, who.organisation)).unsealed == 3
    await sealing.run()
    await decide(cell, who, "rm c")
    await sealing.run()
    await sealing.run()
    checked = await cell.reads.verify_audit(who)
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
async def test_what_was_changed_is_found(cell: Cell, statement: str) -> None:
    who, sealing = somebody(), Sealing(cell.database)
    for command in ("rm a", "rm b", "rm c"):
        await decide(cell, who, command)
        await sealing.run()
    assert await faults(cell, who) == []
    target = (await cell.reads.audit(who, OLDEST, AuditFilter()))[1].id
    if "audit_batches" not in statement:
        with pytest.raises(asyncpg.RaiseError, match="never changed"):
            async with cell.database.connection() as connection:
                await connection.execute(statement, target)
    organisation = " and organisation = $2" if "audit_batches" in statement else ""
    await tamper(cell, statement + organisation, target, *([who.organisation] if organisation else []))
    assert await faults(cell, who) != []


async def test_a_trail_that_was_cut_off_at_its_end_does_not_have_the_saved_head(cell: Cell) -> None:
    who, sealing = somebody(), Sealing(cell.database)
    heads = []
    for command in ("rm a", "rm b"):
        await decide(cell, who, command)
        await sealing.run()
        heads.append((await cell.reads.verify_audit(who)).head)
    for head in heads:
        assert (await cell.reads.verify_audit(who, head)).faults == []
    await tamper(cell, "delete from audit where organisation = $1 and batch = 2", who.organisation)
    await tamper(cell, "delete from audit_batches where organisation = $1 and number = 2", who.organisation)
    assert await faults(cell, who) == []
    assert (await cell.reads.verify_audit(who, heads[0])).faults == []
    assert len((await cell.reads.verify_audit(who, heads[1])).faults) == 1
    await decide(cell, who, "rm c")
    await sealing.run()
    assert len((await cell.reads.verify_audit(who, heads[1])).faults) == 1


async def test_entries_that_stay_unsealed_are_reported(cell: Cell) -> None:
    who = somebody()
    await decide(cell, who, "rm a", "rm b")
    assert await faults(cell, who) == []
    old = "update audit set created_at = now() - interval '61 seconds' where organisation = $1"
    await tamper(cell, old, who.organisation)
    (fault,) = await faults(cell, who)
    assert fault.startswith("2 entries are not sealed, the oldest since 20")
    await Sealing(cell.database).run()
    assert await faults(cell, who) == []


async def test_entries_in_another_order_are_found(cell: Cell) -> None:
    who = somebody()
    await decide(cell, who, "rm a", "rm b")
    await Sealing(cell.database).run()
    first, second = await cell.reads.audit(who, OLDEST, AuditFilter())
    for entry, number in ((first, second.number), (second, first.number)):
        await tamper(cell, "update audit set number = $2 where id = $1", entry.id, number)
    assert await faults(cell, who) != []


async def test_what_no_column_takes_is_kept_as_the_log_has_it(cell: Cell) -> None:
    """A model's command, and so a reason, may contain NUL characters and lone surrogates."""
    who, odd = somebody(), "cat a\x00b \ud800"
    session_id = await cell.session(who, "Go.")
    claim = await cell.claim(session_id, who)
    decision = Decision(Outcome.ASK, f"No rule allows {odd}.", None, None)
    use = events.tool_use(odd, {"command": odd}, call_id="c1", decision=decision)
    await cell.turns.append(claim, [use])
    ran = audit.hook({"reason": odd}, outcome="deny", tool="bash", layer="session", given={"command": odd})
    await HookTrail(cell.database).record(who.organisation, session_id, claim.turn_id, [ran])
    await Sealing(cell.database).run()
    assert await faults(cell, who) == []
    decided, _ = await cell.reads.audit(who, OLDEST, AuditFilter(session=session_id))
    (kept,) = [event for event in await cell.turns.turn_events(claim) if event.id == use.id]
    assert decided.input_hash == audit.hashed(kept.body["input"])


async def test_what_is_erased_leaves_the_chain_whole(cell: Cell) -> None:
    who = somebody()
    session_id = await decide(cell, who, "rm a")
    await Sealing(cell.database).run()
    await cell.delete(who, session_id)
    (entry,) = await cell.reads.audit(who, OLDEST, AuditFilter())
    assert (entry.content, entry.outcome) == (None, "deny")
    assert await faults(cell, who) == []


@pytest.mark.requirement("S7")
async def test_hooks_that_ran_are_kept_and_sealed(cell: Cell) -> None:
    who = somebody()
    session_id = await decide(cell, who)
    content: JsonObject = {"hook_event": "Stop", "hook": "check", "reason": "more to do"}
    runs = [
        audit.hook(content, outcome="deny", tool="Bash", layer="agent", given={"command": "rm a"}),
        audit.hook(content, outcome="block", tool=None, layer="agent", given=None),
    ]
    await HookTrail(cell.database).record(who.organisation, session_id, "turn_1", runs)
    found = await cell.reads.audit(who, OLDEST, AuditFilter(kind="hook", session=session_id))
    assert [(one.outcome, one.tool, one.layer, one.turn) for one in found] == [
        ("deny", "Bash", "agent", "turn_1"),
        ("block", None, "agent", "turn_1"),
    ]
    assert found[0].input_hash == audit.hashed({"command": "rm a"})
    assert (found[1].input_hash, found[1].content) == (None, content)
    await Sealing(cell.database).run()
    assert await faults(cell, who) == []
