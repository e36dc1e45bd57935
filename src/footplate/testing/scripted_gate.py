"""A permission gate for tests, which returns scripted decisions and hook results."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from footplate.domain.json import JsonObject
from footplate.domain.policy.hooks import HookEvent, HookFeedback
from footplate.domain.policy.permissions import Decision, Layer, PermissionOutcome


@dataclass
class ScriptedGate:
    """Returns the scripted outcome of each call, or else allows it. Records every call and hook event."""

    outcomes: Mapping[str, PermissionOutcome] = field(default_factory=dict)
    """Outcomes by tool name, or by the full text of a command."""
    calls: list[tuple[str, JsonObject]] = field(default_factory=list)
    agents: list[str | None] = field(default_factory=list)
    """The subagent of each call. None for the main agent."""
    hook_feedback: dict[HookEvent, list[HookFeedback]] = field(default_factory=dict)
    """Hook output for each event, one per call; then none."""
    hook_events: list[tuple[HookEvent, JsonObject]] = field(default_factory=list)
    failure: Exception | None = None
    """Raised instead of a decision."""

    async def decide(
        self,
        tool: str,
        given: JsonObject,
        *,
        directory: str | None = None,  # noqa: ARG002 - part of the port's signature
        agent: str | None = None,
    ) -> Decision:
        self.calls.append((tool, given))
        self.agents.append(agent)
        if self.failure is not None:
            raise self.failure
        outcome = self.outcomes.get(str(given.get("command")), self.outcomes.get(tool))
        if outcome is None:
            return Decision(PermissionOutcome.ALLOW, "No rule matches.")
        return Decision(outcome, "Scripted decision.", f"{tool}(…)", Layer.PROJECT)

    async def run_hooks(
        self,
        event: HookEvent,
        fields: JsonObject,
        *,
        about: str = "",  # noqa: ARG002 - part of the port's signature
        agent: str | None = None,  # noqa: ARG002 - part of the port's signature
    ) -> HookFeedback:
        self.hook_events.append((event, fields))
        remaining = self.hook_feedback.get(event)
        return remaining.pop(0) if remaining else HookFeedback()
