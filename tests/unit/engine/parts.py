"""Fakes of the resources of a turn, which record the calls that they receive."""

from dataclasses import dataclass, field
from typing import Any, cast

from footplate.domain.agents import ResolvedConfig
from footplate.domain.ports import Endpoint
from footplate.domain.running import Claim, ModelGrant, OpenEnvironment
from footplate.engine.lodging import TurnResources

CONFIG = ResolvedConfig(harness="claude", model="claude-sonnet-5", system="")
CLAIM = Claim(
    organisation="org", session_id="sesn_1", epoch=1, turn_id="turn_1", attempt=1, failures=0, first_seq=1,
    control_seq=0, controls_seq=0, config=CONFIG, content=[], context={}, entries=0,
)  # fmt: skip


@dataclass
class Part:
    """A fake environment, model grant and harness in one."""

    alive: bool = True
    said: list[str] = field(default_factory=list)
    endpoints: dict[str, Endpoint] = field(default_factory=dict)

    def renew(self, deadline: float) -> None:
        self.said.append(f"renewed to {deadline:g}")

    def pause(self) -> None:
        self.said.append("paused")

    async def aclose(self) -> None:
        self.said.append("closed")

    @property
    def closed(self) -> bool:
        return "closed" in self.said


def lodging(part: Part) -> TurnResources:
    return TurnResources(cast("OpenEnvironment", part), cast("ModelGrant", part), part)


class Opened:
    """Opens environments and grants model access, each as a separate fake."""

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def grant(self, *, deadline: float) -> Any:
        del deadline
        self.parts.append(Part())
        return self.parts[-1]

    async def open_environment(self, *_: object, models: Any, **__: object) -> Any:
        return models
