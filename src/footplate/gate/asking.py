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
    output: Word
    seconds: float


@dataclass(slots=True)
class _Round:
    """Collects the hook runs of one event until they are recorded."""

    payload: JsonObject
    runs: list[AuditEntry] = field(default_factory=list)

    def add_run(self, run: _Asked, outcome: str, reason: str) -> None:
        hook, output = run.hook, run.output
        metrics.HOOKS.labels(hook.event.value, hook.kind.value, outcome).inc()
        content: JsonObject = {
            "hook_event": hook.event.value,
            "hook": hook.name,
            "type": hook.kind.value,
            "seconds": round(run.seconds, 3),
            "reason": reason or None,
        }
        if output.failure is not None:
            content["failed"] = True
        if hook.kind is HookKind.PYTHON:
            content |= _noted(output)
        tool = self.payload.get("tool_name")
        self.runs.append(
            audit.hook(
                content,
                outcome=outcome,
                tool=None if tool is None else str(tool),
                layer=hook.layer.label,
                given=self.payload.get("tool_input"),
            )
        )


class Asker:
    """Runs hooks. Each worker has one instance."""

    def __init__(self, access: HookAccess, records: HookRecords) -> None:
        self._access = access
        self._records = records
        self._http_transport = HttpAsker(access)

    async def decide_call(
        self, turn: Scene, hooks: Sequence[Hook], tool: str, tool_input: JsonObject, *, directory: str | None
    ) -> Decision | None:
        """Run the hooks that match a tool call and return the strictest decision. No hook runs after a denial. Returns
        None if no hook made a decision.
        """
        strictest: Decision | None = None
        fields: JsonObject = {"tool_name": tool, "tool_input": tool_input}
        async with self._record_event(turn, hooks, fields, tool, directory) as (matching_hooks, event_run):
            for hook in matching_hooks:
                run = await self._run_hook(hook, event_run.payload, turn)
                decision = words.decision(hook, run.output)
                event_run.add_run(run, "none" if decision is None else decision.outcome.value, decision.reason if decision else "")
                if decision is not None and decision.outcome is Outcome.DENY:
                    return decision
                if decision is not None and (strictest is None or decision.outcome is Outcome.ASK):
                    strictest = decision
        return strictest

    async def run_hooks(self, turn: Scene, hooks: Sequence[Hook], fields: JsonObject, *, about: str) -> Heard:
        """Run the hooks of any event other than `PreToolUse`. No hook runs after one that blocks."""
        messages: list[str] = []
        async with self._record_event(turn, hooks, fields, about, None) as (matching_hooks, event_run):
            for hook in matching_hooks:
                run = await self._run_hook(hook, event_run.payload, turn)
                feedback = words.heard(hook, run.output)
                messages += feedback.told
                failed = run.output.failure is not None and hook.event not in FAIL_CLOSED
                outcome = "failed" if failed else "none" if feedback.block is None else "block"
                event_run.add_run(run, outcome, (run.output.failure or "") if failed else feedback.block or "")
                if feedback.block is not None:
                    return Heard(feedback.block, tuple(messages))
        return Heard(None, tuple(messages))

    @asynccontextmanager
    async def _record_event(
        self, turn: Scene, hooks: Sequence[Hook], fields: JsonObject, about: str, directory: str | None
    ) -> "AsyncIterator[tuple[Sequence[Hook], _Round]]":
        matching_hooks = [hook for hook in hooks if hook.matches(about)]
        if not matching_hooks:
            yield (), _Round({})
            return
        environment = turn.environment
        payload: JsonObject = {
            "session_id": turn.session_id,
            "transcript_path": "",
            "cwd": directory or fields.get("cwd") or await environment.directory() or environment.root,
            "permission_mode": "default",
            "hook_event_name": matching_hooks[0].event.value,
            **({"context": turn.context} if turn.context else {}),
            **fields,
        }
        event_run = _Round(payload)
        yield matching_hooks, event_run
        await self._records.record(turn.organisation, turn.session_id, turn.turn_id, event_run.runs)

    async def _run_hook(self, hook: Hook, payload: JsonObject, turn: Scene) -> _Asked:
        started = time.monotonic()
        match hook.kind:
            case HookKind.COMMAND:
                output = await command.ask(hook, payload, turn.environment)
            case HookKind.HTTP:
                output = await self._http_transport.ask(hook, payload)
            case HookKind.PYTHON:
                output = await python.ask(hook, payload, self._access)
                _count(output)
        return _Asked(hook, output, time.monotonic() - started)


def _noted(output: Word) -> JsonObject:
    """Return the `audit` value that a Python hook adds to its audit entry, truncated if it is too long."""
    note = output.answer.get("audit")
    text = str(note)
    return {} if note is None else {"audit": note if len(text) <= _MOST_NOTED else text[:_MOST_NOTED]}


def _count(output: Word) -> None:
    counts = output.answer.get("metrics")
    for name, number in [*counts.items()][:_MOST_COUNTED] if isinstance(counts, dict) else []:
        if isinstance(number, int | float) and number >= 0:
            metrics.HOOK_COUNTS.labels(metrics.COUNTED(name[:100])).inc(number)
