"""Records the base commit of each project in the log at a session's first turn, before any file is written. The base
commit is the commit that the session starts from.

If the worker dies right afterwards, the next worker reads the same base commits and creates the same trees, on any
host. This module also loads the instructions that the first project has at its base commit.
"""

from dataclasses import replace

from footplate.domain.ports.engine import Claim, Trees, TurnStore
from footplate.domain.projects.project import SessionProject, read_base_commits
from footplate.domain.projects.project_instructions import ProjectInstructions


async def fix_base_commits(trees: Trees, turns: TurnStore, claim: Claim) -> Claim:
    """Return the claim with a base commit for each project."""
    if all(project.base is not None for project in claim.config.projects):
        return claim
    commits = read_base_commits(claim.context)
    projects: list[SessionProject] = []
    for project in claim.config.projects:
        base = project.base
        if base is None:
            found = await trees.resolve_base(claim.organisation, project, commits.get(project.id))
            base = await turns.decide_base(claim, project.id, replace(found, name=project.name))
        projects.append(replace(project, base=base))
    return replace(claim, config=replace(claim.config, projects=tuple(projects)))


async def load_instructions(trees: Trees, claim: Claim) -> ProjectInstructions:
    """Load the instructions of the first project, which is the working directory. Additional projects provide none."""
    if not claim.config.projects:
        return ProjectInstructions()
    return await trees.load_instructions(claim.organisation, claim.config.projects[0])
