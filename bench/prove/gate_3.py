"""Approvals under fire: whoever is killed between an ask and the end of its call, it runs at most once, or never.

A message of the model has one call or three, all of which a person is asked about. The worker is killed while the asks
are written, while they wait, or at a named point after the answer; judged by the lines that the calls left in a file.
"""

import itertools
import random
import secrets
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import anthropic

from bench.prove import backends
from bench.prove.clients import TOOLSET, Client, Event
from bench.prove.cluster import Cluster, open_cluster
from bench.prove.core_2 import SETTINGS
from bench.prove.crash import work
from bench.prove.figure import Figure
from footplate.domain import events
from footplate.domain.json import Json
from footplate.stack.leftovers import wait_until
from footplate.testing import Replies, replies, text, tool

_SETTINGS: Final = {"FOOTPLATE_MAX_FAILURES": "1000", "FOOTPLATE_KEPT_SESSIONS": "0"}
_HARNESSES: Final = ("native", "claude")
_ASKING: Final = {"type": "always_ask"}
_BEFORE: Final = ("after_ask", "before_turn_commit", "after_turn_commit")
"""Points that are met while the turn asks and parks."""
_AFTER: Final = (
    "before_intent",
    "after_intent",
    "in_tool",
    "before_result_commit",
    "after_result_commit",
    "before_turn_commit",
    "after_turn_commit",
)
"""Points that are met when it goes on."""
_WAITING: Final = "while it waits"
_NOBODY: Final = "nobody"
_TRIES: Final = 5
_PATIENCE: Final = 120.0
_MARKED: Final = ("after_intent", "in_tool", "before_result_commit")
"""Between a call's start mark and its result: whoever dies there leaves its outcome unknown."""


@dataclass(slots=True)
class _Found:
    faults: list[str] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    seed = secrets.randbits(32)
    print(f"  seed {seed}", flush=True)
    chance = random.Random(seed)
    moments = [_NOBODY, _WAITING, *(f"before: {point}" for point in _BEFORE), *(f"after: {point}" for point in _AFTER)]
    plan = list(itertools.product(_HARNESSES, (1, 3), moments)) * 4
    if quick:
        plan = [
            ("native", 3, "after: after_intent"),
            ("native", 1, "before: after_ask"),
            ("claude", 3, _WAITING),
            ("claude", 1, "after: in_tool"),
        ]
    chance.shuffle(plan)
    found = _Found()
    async with (
        backends.settings(backends.default()) as settings,
        open_cluster(apis=1, workers=2, environment={**SETTINGS, **_SETTINGS, **settings}) as cluster,
        Client(cluster, max_retries=40) as client,
    ):
        for harness, number in itertools.product(_HARNESSES, (1, 3)):
            await cluster.model.install(f"{harness}-{number}", _script(harness, number))
        asking = {**TOOLSET, "configs": [{"name": "bash", "permission_policy": _ASKING}]}
        agents = {
            harness: await client.agent(tools=[asking], extra_body={"harness": harness}) for harness in _HARNESSES
        }
        for harness, number, moment in plan:
            case = _Case(cluster, client, found, f"{harness}, {number} calls, {moment}", moment, chance)
            await case.run(agents[harness], f"Go. [[script:{harness}-{number}]]")
    return _figure(found, len(plan))


def _script(harness: str, number: int) -> Replies:
    name = "Bash" if harness == "claude" else "bash"
    calls = [tool(name, {"command": f"echo {letter} >> lines"}) for letter in "abc"[:number]]
    return replies(calls, [text("Done.")])


@dataclass(slots=True)
class _Case:
    cluster: Cluster
    client: Client
    found: _Found
    title: str
    moment: str
    chance: random.Random

    async def run(self, agent: str, prompt: str) -> None:
        for _ in range(_TRIES):
            session_id = await self.client.session(agent)
            self._arm("before")
            await self.client.send_text(session_id, prompt)
            asked = await self._idle(session_id, "requires_action", "end_turn")
            await self._heal()
            if asked:
                break
            await self._never_asked(session_id)
        else:
            self._fault(f"was never asked in {_TRIES} tries")
            return
        if self.moment == _WAITING:
            for number in range(len(self.cluster.workers)):
                await self.cluster.kill_worker(number)
                await self.cluster.restart_worker(number)
        words = {event_id: self.chance.choice(["allow", "allow", "deny"]) for event_id in asked}
        self._arm("after")
        for event_id, word in words.items():
            await self._answer(session_id, event_id, word)
        await self._idle(session_id, "end_turn")
        await self._heal()
        await self._judge(session_id, words)

    def _arm(self, when: str) -> None:
        if self.moment.startswith(f"{when}: "):
            (self.cluster.failpoints / self.moment.partition(": ")[2]).write_text("kill")

    async def _heal(self) -> None:
        """Whoever killed itself comes back; a point that was not met is taken away."""
        for point in {*_BEFORE, *_AFTER}:
            (self.cluster.failpoints / point).unlink(missing_ok=True)
        for number, worker in enumerate(self.cluster.workers):
            if not worker.running:
                self.found.count["kills"] += 1
                await self.cluster.restart_worker(number)

    async def _answer(self, session_id: str, event_id: str, word: str) -> None:
        said = {"type": events.USER_TOOL_CONFIRMATION, "tool_use_id": event_id, "result": word}
        first = await self.client.send(session_id, said)
        if await self.client.send(session_id, said) != first:
            self._fault(f"the same answer to {event_id} again is another event")
        try:
            other = "deny" if word == "allow" else "allow"
            await self.client.send(session_id, {**said, "result": other})
            self._fault(f"another answer to {event_id} was taken")
        except anthropic.ConflictError:
            self.found.count["conflicts refused"] += 1

    async def _never_asked(self, session_id: str) -> None:
        """A worker that is lost between an answer and its first ask, as may happen on a busy machine, leaves calls that
        were never started, and the model hears so. None of them may have run.
        """
        self.found.count["lost before they asked"] += 1
        if ran := work.lines(self.cluster, session_id):
            self._fault(f"nobody was asked, and it ran: {ran}")

    async def _idle(self, session_id: str, *reasons: str) -> list[str]:
        """What waits, once the session does."""
        last: list[Event] = []

        async def ended() -> bool:
            told = await self.client.events(session_id, **{"types[]": events.STATUS_IDLE})
            last[:] = [event for event in told if event["stop_reason"]["type"] in reasons]
            session = await self.client.sdk.beta.sessions.retrieve(session_id)
            return bool(last) and session.status == "idle"

        if not await wait_until(ended, _PATIENCE):
            self._fault(f"never came to {' or '.join(reasons)}")
            return []
        return list(last[-1]["stop_reason"].get("event_ids") or [])

    async def _judge(self, session_id: str, words: dict[str, str]) -> None:
        told = await self.client.events(session_id)
        uses = {event["id"]: event for event in told if event["type"] == events.AGENT_TOOL_USE}
        results = Counter(event["tool_use_id"] for event in told if event["type"] == events.AGENT_TOOL_RESULT)
        unknown = {
            event["tool_use_id"]
            for event in told
            if event["type"] == events.AGENT_TOOL_RESULT and "outcome of this call is unknown" in str(event["content"])
        }
        left = Counter(work.lines(self.cluster, session_id))
        if uses.keys() != words.keys() or results != Counter(words.keys()):
            self._fault(f"{len(words)} asks, {len(uses)} calls, results {dict(results)}")
        for event_id, word in words.items():
            name = work.name_of(str(uses[event_id]["input"]["command"])) if event_id in uses else ""
            self._judge_call(name, word, left[name], is_unknown=event_id in unknown)

    def _judge_call(self, name: str, word: str, ran: int, *, is_unknown: bool) -> None:
        self.found.count[word] += 1
        self.found.count["unknown"] += is_unknown
        if word == "deny" and ran:
            self._fault(f"{name} was denied and ran")
        elif ran > 1:
            self._fault(f"{name} ran {ran} times")
        elif is_unknown and not self.moment.endswith(_MARKED):
            self._fault(f"{name} is unknown, and nobody died in it")
        elif word == "allow" and not ran and not is_unknown:
            self._fault(f"{name} was allowed and never ran")

    def _fault(self, what: str) -> None:
        self.found.faults.append(f"{self.title}: {what}")
        print(f"  {self.found.faults[-1]}", flush=True)


def _figure(found: _Found, cases: int) -> Figure:
    count = found.count
    told = (
        f"{cases} messages with asks, `native` and `claude`, {count['kills']} workers killed at named points: "
        f"{count['allow']} allowed calls, each ran once but {count['unknown']} whose outcome is said to be unknown and "
        f"which ran at most once; {count['deny']} denied, none ran; every session went on; "
        f"{count['conflicts refused']} second answers of another kind refused"
    )
    if found.faults:
        told = f"{len(found.faults)} faults, the first: {found.faults[0]}"
    details: dict[str, Json] = {"faults": [*found.faults], **count}
    return Figure(text=told, holds=not found.faults, details=details)
