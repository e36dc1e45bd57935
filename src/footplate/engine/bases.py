"""What a session's trees begin with is decided once, in the log, before anything is written to a disk.

A worker that dies right after leaves the decision to the next one, which makes the same trees of it, on whichever host.
"""

from dataclasses import replace

from footplate.domain.brought import Brought
from footplate.domain.projects import SessionProject
from footplate.domain.running import Claim, Trees, TurnStore


async def decided(trees: Trees | None, turns: TurnStore, claim: Claim) -> Claim:
    """The same claim; each of its projects has a base."""
    if trees is None or all(project.base is not None for project in claim.config.projects):
        return claim
    projects: list[SessionProject] = []
    for project in claim.config.projects:
        base = project.base
        if base is None:
            found = await trees.base(claim.organisation, project)
            base = await turns.decide_base(claim, project.id, replace(found, name=project.name))
        projects.append(replace(project, base=base))
    return replace(claim, config=replace(claim.config, projects=tuple(projects)))


async def brought(trees: Trees | None, claim: Claim) -> Brought:
    """Of the project that is the working directory: the others lie beside it, and say nothing to the agent."""
    if trees is None or not claim.config.projects:
        return Brought()
    return await trees.brought(claim.organisation, claim.config.projects[0])
