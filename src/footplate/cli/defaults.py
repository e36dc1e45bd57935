"""Defaults of the command line: model, agent, environment, tools, system prompt, harness and timeout."""

from typing import Final

DEFAULT_MODEL: Final = "claude-sonnet-5"
AGENT_NAME: Final = "footplate-cli"
ENVIRONMENT_NAME: Final = "footplate-cli"
DEFAULT_TOOLS: Final = ({"type": "agent_toolset_20260401"},)
SYSTEM_PROMPT: Final = (
    "You are a careful software engineer. Work in the current directory with the tools you have. "
    "Read before you change, run what you changed, and say briefly what you did and what you found."
)
RUN_TIMEOUT: Final = 600.0
"""Seconds after which `run` interrupts a turn."""
CLAUDE_HARNESS: Final = "claude"


def default_harness(model: str) -> str | None:
    """Returns `claude` for Claude models. For any other model returns None: the server chooses the harness."""
    return CLAUDE_HARNESS if model.removeprefix("anthropic:").startswith("claude") else None
