"""A gate for tests: it says what it was told to say."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from footplate.domain.hooks import Heard, HookEvent
from footplate.domain.json import JsonObject
from footplate.domain.permissions import Decision, Layer, Outcome


@dataclass
class ScriptedGate:
    """Allows what it has no word for. Every question is kept."""

    words: Mapping[str, Outcome] = field(default_factory=dict)
    """By the name of a tool, or by a command's whole text."""
    asked: list[tuple[str, JsonObject]] = field(default_factory=list)
    agents: list[str | None] = field(default_factory=list)
    """Who made each call; None: the agent itself."""
    heard: dict[HookEvent, list[Heard]] = field(default_factory=dict)
    """What hooks say at other moments, one after the other; then nothing."""
    told: list[tuple[HookEvent, JsonObject]] = field(default_factory=list)
    failure: Exception | None = None
    """Raised instead of an answer."""

    async def decide(
        self,
        tool: str,
        given: JsonObject,
        *,
        directory: str | None = None,  # noqa: ARG002 - the port's
        agent: str | None = None,
    ) -> Decision:
        self.asked.append((tool, given))
        self.agents.append(agent)
        if self.failure is not None:
            raise self.failure
        outcome = self.words.get(str(given.get("command")), self.words.get(tool))
        if outcome is None:
            return Decision(Outcome.ALLOW, "Nobody said anything.")
        return Decision(outcome, "The script says so.", f"{tool}(…)", Layer.PROJECT)

    async def tell(
        self,
        event: HookEvent,
        fields: JsonObject,
        *,
        about: str = "",  # noqa: ARG002 - the port's
        agent: str | None = None,  # noqa: ARG002 - the port's
    ) -> Heard:
        self.told.append((event, fields))
        left = self.heard.get(event)
        return left.pop(0) if left else Heard()
