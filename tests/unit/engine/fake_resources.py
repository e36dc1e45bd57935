"""Fakes of the resources of a turn, which record the calls that they receive."""

from dataclasses import dataclass, field
from typing import Any, cast

from footplate.domain.agents.agents_and_config import ResolvedConfig
from footplate.domain.files.attachments import Attachment, AttachmentFailed
from footplate.domain.ports.engine import Claim, ModelGrant, OpenEnvironment, OpenRequest
from footplate.domain.ports.harness import Endpoint
from footplate.domain.sessions.shell_state import ShellState
from footplate.engine.turn_resources import TurnResources

CONFIG = ResolvedConfig(harness="claude", model="claude-sonnet-5", system="")
CLAIM = Claim(
    organisation="org", session_id="sesn_1", epoch=1, turn_id="turn_1", attempt=1, failures=0, first_seq=1,
    control_seq=0, controls_seq=0, config=CONFIG, content=[], context={}, entries=0,
)  # fmt: skip


class NoAttachmentSources:
    """Has no files, and fetches no URLs."""

    async def file_size(self, organisation: str, file_id: str) -> int:
        del organisation
        raise AttachmentFailed(f"There is no file {file_id}.")

    async def load_file(self, organisation: str, file_id: str) -> Attachment:
        del organisation
        raise AttachmentFailed(f"There is no file {file_id}.")

    async def fetch_url(self, url: str) -> Attachment:
        raise AttachmentFailed(f"{url} is not fetched.")

    async def check_url(self, url: str) -> None:
        raise AttachmentFailed(f"{url} is not checked.")


@dataclass
class FakeResource:
    """A fake environment, model grant and harness in one."""

    alive: bool = True
    calls: list[str] = field(default_factory=list)
    endpoints: dict[str, Endpoint] = field(default_factory=dict)

    def restore_shell(self, state: ShellState) -> None:
        """Processes of a fake have no shell."""

    def renew(self, deadline: float) -> None:
        self.calls.append(f"renewed to {deadline:g}")

    def pause(self) -> None:
        self.calls.append("paused")

    async def aclose(self) -> None:
        self.calls.append("closed")

    @property
    def closed(self) -> bool:
        return "closed" in self.calls


def make_resources(resource: FakeResource) -> TurnResources:
    return TurnResources(cast("OpenEnvironment", resource), cast("ModelGrant", resource), resource)


class FakeResourceFactory:
    """Opens environments and grants model access, each as a separate fake."""

    def __init__(self) -> None:
        self.resources: list[FakeResource] = []

    def grant(self, *, deadline: float, organisation: str | None = None) -> Any:
        del deadline, organisation
        self.resources.append(FakeResource())
        return self.resources[-1]

    async def open_environment(self, request: OpenRequest) -> Any:
        return request.models
