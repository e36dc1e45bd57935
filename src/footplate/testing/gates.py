"""A gate for tests that returns scripted decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from footplate.domain.hooks import Heard, HookEvent
from footplate.domain.json import JsonObject
from footplate.domain.permissions import Decision, Layer, Outcome


@dataclass
class ScriptedGate:
    """Returns the scripted outcome of each call, or else allows it. Records every call and hook event."""

    words: Mapping[str, Outcome] = field(default_factory=dict)
    """Outcomes by tool name, or by the full text of a command."""
    asked: list[tuple[str, JsonObject]] = field(default_factory=list)
    agents: list[str | None] = field(default_factory=list)
    """The subagent of each call. None for the main agent."""
    heard: dict[HookEvent, list[Heard]] = field(default_factory=dict)
    """Hook output for each event, one per call; then none."""
    told: list[tuple[HookEvent, JsonObject]] = field(default_factory=list)
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
        self.asked.append((tool, given))
        self.agents.append(agent)
        if self.failure is not None:
            raise self.failure
        outcome = self.words.get(str(given.get("command")), self.words.get(tool))
        if outcome is None:
            return Decision(Outcome.ALLOW, "No rule matches.")
        return Decision(outcome, "Scripted decision.", f"{tool}(…)", Layer.PROJECT)

    async def tell(
        self,
        event: HookEvent,
        fields: JsonObject,
        *,
        about: str = "",  # noqa: ARG002 - part of the port's signature
        agent: str | None = None,  # noqa: ARG002 - part of the port's signature
    ) -> Heard:
        self.told.append((event, fields))
        left = self.heard.get(event)
        return left.pop(0) if left else Heard()
