"""Defaults of the command line: model, agent, environment, tools, system prompt and harness."""

from typing import Final

USUAL_MODEL: Final = "claude-sonnet-5"
AGENT_NAME: Final = "footplate-cli"
ENVIRONMENT_NAME: Final = "footplate-cli"
TOOLS: Final = ({"type": "agent_toolset_20260401"},)
SYSTEM: Final = (
    "You are a careful software engineer. Work in the current directory with the tools you have. "
    "Read before you change, run what you changed, and say briefly what you did and what you found."
)
CLAUDE: Final = "claude"


def harness_for(model: str) -> str | None:
    """Returns `claude` for Claude models. For any other model returns None: the server chooses the harness."""
    return CLAUDE if model.removeprefix("anthropic:").startswith("claude") else None
