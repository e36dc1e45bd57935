"""The tools for child sessions in the native harness: a call takes effect once, and a wait parks the turn."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from footplate.domain.errors import NotFound
from footplate.domain.json import JsonObject
from footplate.domain.policy.permissions import PermissionOutcome as Gated
from footplate.domain.ports.child_sessions import FileMerge
from footplate.domain.sessions import events as ev
from footplate.domain.sessions.ending import EndOutcome
from footplate.domain.sessions.groups import SESSION_TOOLS, ChildRequest, GroupResult, MemberResult, SpawnedGroup
from footplate.domain.sessions.steps import Branches, WaitFor
from footplate.domain.sessions.turns import TurnStatus

from .doubles import Chunk, Crash, World, call, make_model, text_of
from .test_partial_decisions import read_last_request

SPAWN: JsonObject = {"sessions": [{"prompt": "Go"}]}


@dataclass
class MemoryChildren:
    """One group at most for each call. `ended` is the result of all groups."""

    groups: dict[str, SpawnedGroup] = field(default_factory=dict)
    messages: list[tuple[str, str, str]] = field(default_factory=list)
    waited_for_by: list[str] = field(default_factory=list)
    ended: bool = False

    async def spawn(
        self,
        call_id: str,
        requests: Sequence[ChildRequest],
        *,
        max_running: int | None = None,
        wait_for: WaitFor = WaitFor.ALL,
        picks_one: bool = False,
    ) -> SpawnedGroup:
        group = SpawnedGroup(id=f"sgrp_{len(self.groups)}", session_ids=("sesn_c",) * len(requests), names=(None,))
        return self.groups.setdefault(call_id, group)

    async def find_result(self, group_id: str) -> GroupResult | None:
        outcome = EndOutcome.COMPLETED if self.ended else None
        member = MemberResult(index=0, session_id="sesn_c", outcome=outcome, text="Child text")
        known = {group.id for group in self.groups.values()}
        return GroupResult(group_id=group_id, members=(member,)) if group_id in known else None

    async def wait(self, call_id: str, group_id: str) -> GroupResult | None:
        self.waited_for_by.append(call_id)
        return await self.find_result(group_id) if self.ended else None

    async def send_message(self, session_id: str, text: str, call_id: str) -> None:
        if session_id != "sesn_c":
            raise NotFound("session", session_id)
        self.messages.append((session_id, text, call_id))

    async def cancel(self, group_id: str) -> None: ...

    async def merge_files(self, session_ids: Sequence[str], branches: Branches) -> Sequence[FileMerge]:
        raise AssertionError(f"nothing merges {session_ids} as {branches} here")


@pytest.fixture
def children() -> MemoryChildren:
    return MemoryChildren()


@pytest.fixture
def spawning(world: World, children: MemoryChildren) -> World:
    world.config = replace(world.config, tools=(*world.config.tools, *SESSION_TOOLS))
    world.children = children
    return world


def script(number: int) -> list[Chunk]:
    if number == 0:
        return [call("spawn_sessions", json.dumps(SPAWN), "c1", 0)]
    waits = [call("wait_sessions", '{"group_id": "sgrp_0"}', f"w{index}", index) for index in range(2)]
    return [{**waits[0], **waits[1]}] if number == 1 else ["Fine"]


@pytest.mark.requirement("O5")
@pytest.mark.parametrize("after_commit", [False, True])
@pytest.mark.parametrize("crash_at", range(1, 9))
async def test_a_call_that_is_repeated_after_a_crash_takes_effect_once(
    spawning: World, children: MemoryChildren, crash_at: int, *, after_commit: bool
) -> None:
    model, double = make_model(spawning, script)
    spawning.log.crash_at, spawning.log.crash_after_commit = crash_at, after_commit
    try:
        parked = await spawning.run(model)
    except Crash:
        parked = await spawning.run(model)
    (waits,) = spawning.log.of_type(ev.AGENT_CUSTOM_TOOL_USE)
    assert (parked.status, parked.pending) == (TurnStatus.AWAITING, (waits.id,))
    assert len(children.groups) == 1
    assert {*children.waited_for_by} == {waits.id}
    (spawn,) = [use for use in spawning.log.of_type(ev.AGENT_TOOL_USE) if use.body["name"] == "spawn_sessions"]
    assert [*children.groups] == [spawn.id]
    assert "already waits for the group sgrp_0" in text_of(spawning.log.of_type(ev.AGENT_TOOL_RESULT)[-1])
    spawning.send_tool_result(waits.id, "The result of the group")
    assert (await spawning.run(model)).text == "Fine"
    assert str(read_last_request(double)).count("The result of the group") == 1


@pytest.mark.requirement("O5")
async def test_a_group_that_ends_while_the_turn_is_lost_has_its_result_added(
    spawning: World, children: MemoryChildren
) -> None:
    model, double = make_model(spawning, script)
    await spawning.run(model)
    children.ended = True
    await spawning.run(model)
    assert len(spawning.log.of_type(ev.USER_CUSTOM_TOOL_RESULT)) == 1
    assert (await spawning.run(model)).text == "Fine"
    assert "Child text" in str(read_last_request(double))


@pytest.mark.requirement("O5")
async def test_an_approved_call_is_repeated_with_its_event(spawning: World, children: MemoryChildren) -> None:
    model, _ = make_model(spawning, lambda number: ["Fine"] if number else script(0))
    spawning.gate.outcomes = {"spawn_sessions": Gated.ASK}
    (request,) = (await spawning.run(model)).pending
    assert children.groups == {}
    spawning.confirm(request, "allow")
    spawning.log.crash_at = spawning.log.appends + 2
    with pytest.raises(Crash):
        await spawning.run(model)
    assert (await spawning.run(model)).text == "Fine"
    assert [*children.groups] == [request]


async def test_a_new_message_closes_the_wait(spawning: World) -> None:
    model, double = make_model(spawning, script)
    await spawning.run(model)
    spawning.next_turn("turn_2", "Never mind")
    await spawning.run(model)
    assert "has no result" in str(read_last_request(double))
