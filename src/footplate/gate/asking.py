"""Runs the hooks of one event in order, from the organisation's to the session's, and records each run in the audit
trail.
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from footplate.domain import audit
from footplate.domain.audit import AuditEntry
from footplate.domain.hooks import FAIL_CLOSED, Heard, HookAccess
from footplate.domain.json import JsonObject
from footplate.domain.permissions import Decision, Outcome
from footplate.domain.ports import Environment
from footplate.domain.running import HookRecords
from footplate.gate import words
from footplate.gate.askers import command, python
from footplate.gate.askers.http import HttpAsker
from footplate.gate.hooks import Hook, HookKind
from footplate.gate.words import Word
from footplate.telemetry import metrics

_MOST_NOTED: Final = 20_000
_MOST_COUNTED: Final = 20


class NoRecords:
    async def record(self, organisation: str, session_id: str, turn_id: str, runs: Sequence[AuditEntry]) -> None:
        """Discards the records. Used by a worker without an audit trail."""


@dataclass(frozen=True, slots=True)
class Scene:
    """The turn in which hooks run."""

    organisation: str
    session_id: str
    turn_id: str
    environment: Environment
    context: JsonObject = field(default_factory=dict)
    """The context that the client attached to the session and to this input."""


@dataclass(frozen=True, slots=True)
class _Asked:
    hook: Hook
    word: Word
    seconds: float


@dataclass(slots=True)
class _Round:
    """Collects the hook runs of one event until they are recorded."""

    told: JsonObject
    runs: list[AuditEntry] = field(default_factory=list)

    def add(self, asked: _Asked, outcome: str, reason: str) -> None:
        hook, word = asked.hook, asked.word
        metrics.HOOKS.labels(hook.event.value, hook.kind.value, outcome).inc()
        content: JsonObject = {
            "hook_event": hook.event.value,
            "hook": hook.name,
            "type": hook.kind.value,
            "seconds": round(asked.seconds, 3),
            "reason": reason or None,
        }
        if word.failure is not None:
            content["failed"] = True
        if hook.kind is HookKind.PYTHON:
            content |= _noted(word)
        tool = self.told.get("tool_name")
        self.runs.append(
            audit.hook(
                content,
                outcome=outcome,
                tool=None if tool is None else str(tool),
                layer=hook.layer.label,
                given=self.told.get("tool_input"),
            )
        )


class Asker:
    """Runs hooks. Each worker has one instance."""

    def __init__(self, access: HookAccess, records: HookRecords) -> None:
        self._access = access
        self._records = records
        self._http = HttpAsker(access)

    async def judge(
        self, scene: Scene, hooks: Sequence[Hook], tool: str, given: JsonObject, *, directory: str | None
    ) -> Decision | None:
        """Run the hooks that match a tool call and return the strictest decision. No hook runs after a denial. Returns
        None if no hook made a decision.
        """
        strictest: Decision | None = None
        fields: JsonObject = {"tool_name": tool, "tool_input": given}
        async with self._round(scene, hooks, fields, tool, directory) as (concerned, asked_in):
            for hook in concerned:
                asked = await self._ask(hook, asked_in.told, scene)
                said = words.decision(hook, asked.word)
                asked_in.add(asked, "none" if said is None else said.outcome.value, said.reason if said else "")
                if said is not None and said.outcome is Outcome.DENY:
                    return said
                if said is not None and (strictest is None or said.outcome is Outcome.ASK):
                    strictest = said
        return strictest

    async def tell(self, scene: Scene, hooks: Sequence[Hook], fields: JsonObject, *, about: str) -> Heard:
        """Run the hooks of any event other than `PreToolUse`. No hook runs after one that blocks."""
        told: list[str] = []
        async with self._round(scene, hooks, fields, about, None) as (concerned, asked_in):
            for hook in concerned:
                asked = await self._ask(hook, asked_in.told, scene)
                heard = words.heard(hook, asked.word)
                told += heard.told
                failed = asked.word.failure is not None and hook.event not in FAIL_CLOSED
                outcome = "failed" if failed else "none" if heard.block is None else "block"
                asked_in.add(asked, outcome, (asked.word.failure or "") if failed else heard.block or "")
                if heard.block is not None:
                    return Heard(heard.block, tuple(told))
        return Heard(None, tuple(told))

    @asynccontextmanager
    async def _round(
        self, scene: Scene, hooks: Sequence[Hook], fields: JsonObject, about: str, directory: str | None
    ) -> "AsyncIterator[tuple[Sequence[Hook], _Round]]":
        concerned = [hook for hook in hooks if hook.concerns(about)]
        if not concerned:
            yield (), _Round({})
            return
        environment = scene.environment
        told: JsonObject = {
            "session_id": scene.session_id,
            "transcript_path": "",
            "cwd": directory or fields.get("cwd") or await environment.directory() or environment.root,
            "permission_mode": "default",
            "hook_event_name": concerned[0].event.value,
            **({"context": scene.context} if scene.context else {}),
            **fields,
        }
        asked_in = _Round(told)
        yield concerned, asked_in
        await self._records.record(scene.organisation, scene.session_id, scene.turn_id, asked_in.runs)

    async def _ask(self, hook: Hook, told: JsonObject, scene: Scene) -> _Asked:
        began = time.monotonic()
        match hook.kind:
            case HookKind.COMMAND:
                word = await command.ask(hook, told, scene.environment)
            case HookKind.HTTP:
                word = await self._http.ask(hook, told)
            case HookKind.PYTHON:
                word = await python.ask(hook, told, self._access)
                _count(word)
        return _Asked(hook, word, time.monotonic() - began)


def _noted(word: Word) -> JsonObject:
    """Return the `audit` value that a Python hook adds to its audit entry, truncated if it is too long."""
    note = word.answer.get("audit")
    text = str(note)
    return {} if note is None else {"audit": note if len(text) <= _MOST_NOTED else text[:_MOST_NOTED]}


def _count(word: Word) -> None:
    counted = word.answer.get("metrics")
    for name, number in [*counted.items()][:_MOST_COUNTED] if isinstance(counted, dict) else []:
        if isinstance(number, int | float) and number >= 0:
            metrics.HOOK_COUNTS.labels(metrics.COUNTED(name[:100])).inc(number)
