"""Data types for hooks: the events at which hooks run, their feedback and their limits. `footplate.gate` runs the
hooks.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from footplate.domain.network.command_network_access import Network


class HookEvent(StrEnum):
    """When a hook runs. The names are those of Claude Code."""

    BEFORE_TOOL = "PreToolUse"
    AFTER_TOOL = "PostToolUse"
    PROMPT = "UserPromptSubmit"
    STOP = "Stop"
    SUBAGENT_STOP = "SubagentStop"
    COMPACTION = "PreCompact"
    NOTIFICATION = "Notification"


FAIL_CLOSED: Final = frozenset({HookEvent.BEFORE_TOOL, HookEvent.PROMPT})
"""Events before the action. If a hook fails at one of these, the action is denied. At other events it is too late."""


@dataclass(frozen=True, slots=True)
class HookFeedback:
    """The feedback of hooks at an event other than `PreToolUse`."""

    block_reason: str | None = None
    """The reason why a hook blocked the action. None: it is not blocked."""
    messages: tuple[str, ...] = ()
    """Additional texts for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAccess:
    """Limits for hooks that the worker runs itself. Command hooks run in the environment and need none of these."""

    hosts: Network = field(default_factory=Network)
    """Hosts at which HTTP hooks may be called."""
    secret: str | None = field(default=None, repr=False)
    """The signing secret for requests to HTTP hooks, as in Standard Webhooks."""
    memory: int = 512 << 20
    """Memory limit of a Python hook's process, in bytes."""
