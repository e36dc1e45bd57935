"""Where the CLI is that the SDK brings along. Found without importing the SDK: a worker asks when it starts."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent

_PACKAGE: Final = "claude_agent_sdk"


def path() -> Path:
    spec = find_spec(_PACKAGE)
    if spec is not None and spec.origin is not None:
        program = Path(spec.origin).resolve().parent / "_bundled" / "claude"
        if program.is_file():
            return program
    raise Permanent(
        "This worker has no Claude Code: the package claude-agent-sdk is not installed, or came without its CLI.",
        help_text="Install a wheel of claude-agent-sdk for this platform on every worker.",
    )


def directories() -> Sequence[str]:
    """What an environment has to show, read-only, for the CLI to run in it (entry point `footplate.programs`)."""
    try:
        return [str(path().parent)]
    except Permanent:
        return []
