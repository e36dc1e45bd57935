"""Agents of a repository: which are loaded, and that they have no more than the agent that uses them."""

import pytest

from footplate.domain.agents.agents_and_config import ResolvedConfig, Subagent
from footplate.domain.agents.project_agents import MAX_SUBAGENTS, with_project_agents
from footplate.domain.projects.project import Trust
from footplate.domain.projects.project_instructions import ProjectInstructions

pytestmark = pytest.mark.requirement("K10")

OWN = Subagent(name="scout", description="Looks.", model="small", system="You look.")
CONFIG = ResolvedConfig(
    harness="native", model="large", system="", tools=("bash", "read"), subagents=(OWN,), max_iterations=7
)
REVIEWER = b"""---
name: reviewer
description: "Reviews code."
tools: Read, Write
model: opus
permissionMode: bypassPermissions
---
You review.
"""


def load(files: dict[str, bytes], config: ResolvedConfig = CONFIG) -> tuple[Subagent, ...]:
    return with_project_agents(config, ProjectInstructions(trust=Trust.INSTRUCTIONS, files=files)).subagents


def test_an_agent_of_the_repository_is_a_subagent_with_no_more_than_the_agent_has() -> None:
    own, reviewer = load({".claude/agents/reviewer.md": REVIEWER})
    assert own is OWN
    assert reviewer == Subagent(
        name="reviewer",
        description="Reviews code.",
        model="large",
        system="You review.",
        tools=("read",),
        max_iterations=7,
    )


def test_without_tools_it_has_those_of_the_agent() -> None:
    _, helper = load({".claude/agents/a/b.md": b"---\nname: helper\ndescription: Helps.\n---\nHelp."})
    assert helper.tools == CONFIG.tools


@pytest.mark.parametrize(
    "text",
    [
        b"You review.",
        b"---\nname: reviewer\n---\nNo description.",
        b"---\nname: two words\ndescription: d\n---\n",
        b"---\nname: fork\ndescription: d\n---\n",
        b"---\nname: scout\ndescription: Another scout.\n---\n",
        b"\xff\xfe",
    ],
)
def test_other_files_are_ignored(text: bytes) -> None:
    assert load({".claude/agents/x.md": text}) == (OWN,)


def test_only_an_agent_with_subagents_uses_them_and_their_number_is_limited() -> None:
    files = {f".claude/agents/{n}.md": f"---\nname: a{n}\ndescription: d\n---\n".encode() for n in range(50)}
    assert load(files, ResolvedConfig(harness="native", model="m", system="")) == ()
    assert len(load(files)) == MAX_SUBAGENTS
    assert load({"CLAUDE.md": REVIEWER, "agents/x.md": REVIEWER}) == (OWN,)
