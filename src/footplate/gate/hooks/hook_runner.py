"""Runs the hooks of one event in order, from the organisation's hooks to the session's, and records each run in the
audit trail.
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Final

from footplate.domain import audit
from footplate.domain.audit import AuditEntry
from footplate.domain.json import JsonObject
from footplate.domain.organisations.principals import Author
from footplate.domain.policy.hooks import FAIL_CLOSED, HookAccess, HookFeedback
from footplate.domain.policy.permissions import Decision, PermissionOutcome
from footplate.domain.ports.engine import HookRecords
from footplate.domain.ports.harness import Environment
from footplate.gate.hooks import hook_output
from footplate.gate.hooks.hook_config import Hook, HookKind
from footplate.gate.hooks.hook_output import HookOutput
from footplate.gate.hooks.transports import command, python
from footplate.gate.hooks.transports.http import HttpHookTransport
from footplate.telemetry import metrics

_MAX_AUDIT_CHARACTERS: Final = 20_000
_MAX_METRICS: Final = 20


class NullHookRecords:
    async def record(self, organisation: str, session_id: str, turn_id: str, runs: Sequence[AuditEntry]) -> None:
        """Discards the records. Used by a worker without an audit trail."""


@dataclass(frozen=True, slots=True)
class HookTurn:
    """The turn in which hooks run."""

    organisation: str
    session_id: str
    turn_id: str
    environment: Environment
    context: JsonObject = field(default_factory=dict)
    """The context that the client attached to the session and to this input."""
    author: Author | None = None
    """The sender of the message that the turn processes."""


@dataclass(frozen=True, slots=True)
class _HookRun:
    hook: Hook
    output: HookOutput
    seconds: float


@dataclass(slots=True)
class _EventRun:
    """Collects the hook runs of one event until they are recorded."""

    payload: JsonObject
    principal: str | None = None
    runs: list[AuditEntry] = field(default_factory=list)

    def add_run(self, run: _HookRun, outcome: str, reason: str) -> None:
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
            content |= _audit_note(output)
        tool = self.payload.get("tool_name")
        self.runs.append(
            audit.build_hook_entry(
                content,
                outcome=outcome,
                tool=None if tool is None else str(tool),
                layer=hook.layer.label,
                tool_input=self.payload.get("tool_input"),
                principal=self.principal,
            )
        )


class HookRunner:
    """Runs hooks. Each worker has one instance."""

    def __init__(self, access: HookAccess, records: HookRecords) -> None:
        self._access = access
        self._records = records
        self._http_transport = HttpHookTransport(access)

    async def decide_call(
        self, turn: HookTurn, hooks: Sequence[Hook], tool: str, tool_input: JsonObject, *, directory: str | None
    ) -> Decision | None:
        """Run the hooks that match a tool call and return the strictest decision. No hook runs after a denial. Returns
        None if no hook made a decision.
        """
        strictest: Decision | None = None
        fields: JsonObject = {"tool_name": tool, "tool_input": tool_input}
        async with self._record_event(turn, hooks, fields, tool, directory) as (matching_hooks, event_run):
            for hook in matching_hooks:
                run = await self._run_hook(hook, event_run.payload, turn)
                decision = hook_output.make_decision(hook, run.output)
                event_run.add_run(
                    run, "none" if decision is None else decision.outcome.value, decision.reason if decision else ""
                )
                if decision is not None and decision.outcome is PermissionOutcome.DENY:
                    return decision
                if decision is not None and (strictest is None or decision.outcome is PermissionOutcome.ASK):
                    strictest = decision
        return strictest

    async def run_hooks(self, turn: HookTurn, hooks: Sequence[Hook], fields: JsonObject, *, about: str) -> HookFeedback:
        """Run the hooks of any event other than `PreToolUse`. No hook runs after one that blocks."""
        messages: list[str] = []
        async with self._record_event(turn, hooks, fields, about, None) as (matching_hooks, event_run):
            for hook in matching_hooks:
                run = await self._run_hook(hook, event_run.payload, turn)
                feedback = hook_output.make_feedback(hook, run.output)
                messages += feedback.messages
                failed = run.output.failure is not None and hook.event not in FAIL_CLOSED
                outcome = "failed" if failed else "none" if feedback.block_reason is None else "block"
                event_run.add_run(run, outcome, (run.output.failure or "") if failed else feedback.block_reason or "")
                if feedback.block_reason is not None:
                    return HookFeedback(feedback.block_reason, tuple(messages))
        return HookFeedback(None, tuple(messages))

    @asynccontextmanager
    async def _record_event(
        self, turn: HookTurn, hooks: Sequence[Hook], fields: JsonObject, about: str, directory: str | None
    ) -> "AsyncIterator[tuple[Sequence[Hook], _EventRun]]":
        matching_hooks = [hook for hook in hooks if hook.matches(about)]
        if not matching_hooks:
            yield (), _EventRun({})
            return
        environment = turn.environment
        about_turn: JsonObject = {"context": turn.context} if turn.context else {}
        if turn.author:
            about_turn["principal"] = {**asdict(turn.author)}
        payload: JsonObject = {
            "session_id": turn.session_id,
            "transcript_path": "",
            "cwd": directory or fields.get("cwd") or await environment.shell_directory() or environment.root,
            "permission_mode": "default",
            "hook_event_name": matching_hooks[0].event.value,
            **about_turn,
            **fields,
        }
        event_run = _EventRun(payload, turn.author.id if turn.author else None)
        yield matching_hooks, event_run
        await self._records.record(turn.organisation, turn.session_id, turn.turn_id, event_run.runs)

    async def _run_hook(self, hook: Hook, payload: JsonObject, turn: HookTurn) -> _HookRun:
        started = time.monotonic()
        match hook.kind:
            case HookKind.COMMAND:
                output = await command.run_command_hook(hook, payload, turn.environment)
            case HookKind.HTTP:
                output = await self._http_transport.run_http_hook(hook, payload)
            case HookKind.PYTHON:
                output = await python.run_python_hook(hook, payload, self._access)
                _count_metrics(output)
        return _HookRun(hook, output, time.monotonic() - started)


def _audit_note(output: HookOutput) -> JsonObject:
    """Return the `audit` value that a Python hook adds to its audit entry, truncated if it is too long."""
    note = output.json_output.get("audit")
    text = str(note)
    return (
        {} if note is None else {"audit": note if len(text) <= _MAX_AUDIT_CHARACTERS else text[:_MAX_AUDIT_CHARACTERS]}
    )


def _count_metrics(output: HookOutput) -> None:
    counts = output.json_output.get("metrics")
    for name, number in [*counts.items()][:_MAX_METRICS] if isinstance(counts, dict) else []:
        if isinstance(number, int | float) and number >= 0:
            metrics.HOOK_COUNTS.labels(metrics.HOOK_COUNTER_LABELS(name[:100])).inc(number)
