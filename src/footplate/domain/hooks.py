"""The moments at which hooks are asked, and what came of it. Values only; they are asked in `footplate.gate`."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from footplate.domain.networks import Network


class HookEvent(StrEnum):
    """By Claude Code's names."""

    BEFORE_TOOL = "PreToolUse"
    AFTER_TOOL = "PostToolUse"
    PROMPT = "UserPromptSubmit"
    STOP = "Stop"
    SUBAGENT_STOP = "SubagentStop"
    COMPACTION = "PreCompact"
    NOTIFICATION = "Notification"


FAIL_CLOSED: Final = frozenset({HookEvent.BEFORE_TOOL, HookEvent.PROMPT})
"""What nothing has happened of yet: a hook that comes to no word has said no. Of others there is nothing to stop."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What hooks said at a moment other than before a call."""

    block: str | None = None
    """Why it is not to be so, in a hook's words."""
    told: tuple[str, ...] = ()
    """What the model is told besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAccess:
    """What hooks may do that a worker asks itself. An environment's commands need nothing of this."""

    hosts: Network = field(default_factory=Network)
    """Where hooks may be asked by HTTP."""
    secret: str | None = field(default=None, repr=False)
    """What requests to them are signed with, in the form of Standard Webhooks."""
    memory: int = 512 << 20
    """Bytes that a Python hook's process may have."""
