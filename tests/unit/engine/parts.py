"""Stand-ins for what a turn works in, which note what is done to them."""

from dataclasses import dataclass, field
from typing import Any, cast

from footplate.domain.agents import ResolvedConfig
from footplate.domain.ports import Endpoint
from footplate.domain.running import Claim, ModelGrant, OpenEnvironment
from footplate.engine.lodging import Lodging

CONFIG = ResolvedConfig(harness="claude", model="claude-sonnet-5", system="")
CLAIM = Claim(
    organisation="org", session_id="sesn_1", epoch=1, turn_id="turn_1", attempt=1, failures=0, first_seq=1,
    control_seq=0, controls_seq=0, config=CONFIG, content=[], context={}, entries=0,
)  # fmt: skip


@dataclass
class Part:
    """Stands for an environment, a leave to ask models and a harness at once."""

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


def lodging(part: Part) -> Lodging:
    return Lodging(cast("OpenEnvironment", part), cast("ModelGrant", part), part)


class Opened:
    """Opens environments and grants leave, each a `Part` of its own."""

    def __init__(self) -> None:
        self.parts: list[Part] = []

    def grant(self, *, deadline: float) -> Any:
        del deadline
        self.parts.append(Part())
        return self.parts[-1]

    async def open(self, *_: object, models: Any, **__: object) -> Any:
        return models
