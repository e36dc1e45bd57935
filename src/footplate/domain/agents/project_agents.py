"""Reads the agents that a trusted repository defines in `.claude/agents/`, as additional subagents of an agent.

A file has a header with a name and a description, and its text is the system prompt. A repository cannot grant
anything: its agents have the model and the limits of the agent that uses them, only tools which that agent has, and no
rules of their own.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from footplate.domain.agents.agents_and_config import ResolvedConfig, Subagent
from footplate.domain.policy.permissions import TOOL_NAMES
from footplate.domain.projects.project_instructions import (
    InstructionKind,
    ProjectInstructions,
    classify_path,
    decode_text,
)

MAX_SUBAGENTS: Final = 40
"""Limit for an agent's own subagents and those of the repository together."""
_HEADER: Final = re.compile(r"\A---[ \t]*\r?\n(?P<header>.*?)^---[ \t]*\r?$\n?(?P<text>.*)\Z", re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r"^(?P<name>[A-Za-z_-]{1,40}):(?P<value>[^\n]*)$", re.MULTILINE)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_RESERVED: Final = "fork"


def with_project_agents(config: ResolvedConfig, instructions: ProjectInstructions) -> ResolvedConfig:
    """Add the repository's agents to those of an agent that has subagents. An agent's own subagent of the same name has
    precedence.
    """
    if not config.subagents:
        return config
    subagents = {agent.name: agent for agent in config.subagents}
    for path, content in instructions.files.items():
        if classify_path(path) is InstructionKind.AGENT and len(subagents) < MAX_SUBAGENTS:
            agent = _read_agent(decode_text(content) or "", config)
            if agent is not None:
                subagents.setdefault(agent.name, agent)
    return replace(config, subagents=tuple(subagents.values()))


def _read_agent(text: str, config: ResolvedConfig) -> Subagent | None:
    """Return None for a file without a valid header."""
    if (found := _HEADER.match(text)) is None:
        return None
    fields = {match["name"]: match["value"].strip().strip("\"'") for match in _FIELD.finditer(found["header"])}
    name, description = fields.get("name", ""), fields.get("description", "")
    if not _NAME.match(name) or name == _RESERVED or not description:
        return None
    return Subagent(
        name=name,
        description=description,
        model=config.model,
        system=found["text"].strip(),
        tools=_select_tools(fields, config),
        max_iterations=config.max_iterations,
        model_parameters=config.model_parameters,
    )


def _select_tools(fields: Mapping[str, str], config: ResolvedConfig) -> tuple[str, ...]:
    """The agent's tools that the file names, or all of them if it names none."""
    if "tools" not in fields:
        return config.tools
    named = {tool.strip(" []\"'") for tool in fields["tools"].split(",")}
    return tuple(tool for tool in config.tools if TOOL_NAMES.get(tool) in named)
