"""Locates the Claude Code CLI that is bundled with the Claude Agent SDK.

Every worker calls this module at start-up, so this module does not import the SDK, which is slow to load.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent

_PACKAGE: Final = "claude_agent_sdk"


def find_cli() -> Path:
    spec = find_spec(_PACKAGE)
    if spec is not None and spec.origin is not None:
        program = Path(spec.origin).resolve().parent / "_bundled" / "claude"
        if program.is_file():
            return program
    raise Permanent(
        "Claude Code was not found: the package claude-agent-sdk is not installed on this worker, or does not include "
        "the CLI.",
        help_text="Install footplate[claude] on every worker, with the wheel of claude-agent-sdk for its platform.",
    )


def program_directories() -> Sequence[str]:
    """Directories that an environment must mount read-only to run the CLI (entry point `footplate.programs`)."""
    try:
        return [str(find_cli().parent)]
    except Permanent:
        return []
