"""An agent's own commits, brought to the host: as a bundle that git inside the environment makes, with no right that
the agent lacks, and that the host takes in by content alone. Nothing of the agent's git directory is read by the host.
"""

import asyncio
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from footplate.domain.errors import Permanent
from footplate.domain.ports import Environment
from footplate.trees.git import Git, GitFailed

AGENTS: Final = "refs/agent/"
"""Where the host keeps the agent's branches."""
_SECONDS: Final = 300.0
_MOST: Final = 1 << 30
_BUNDLE: Final = "commits.bundle"
_MAKE: Final = """cd {tree} && mkdir -p {scratch} && rm -f {bundle} && \
if [ -n "$(git rev-list -n 1 --branches --not {known})" ]; then \
git bundle create -q {bundle} --branches --not {known} && wc -c < {bundle}; else echo 0; fi"""


class NoCommits(Permanent):
    code = "no_commits"


async def collect(environment: Environment, tree: str, git: Git, base: str | None) -> Mapping[str, str]:
    """The agent's branches that have commits which the host did not have, by name, in `refs/agent/` of the host's.

    `tree`: as it is seen inside.
    """
    bundle = f"{environment.scratch}/{_BUNDLE}"
    known = shlex.quote(base) if base else "--remotes"
    words = {"tree": shlex.quote(tree), "scratch": shlex.quote(environment.scratch), "bundle": shlex.quote(bundle)}
    made = await environment.run(["sh", "-c", _MAKE.format(known=known, **words)], timeout=_SECONDS)
    size = made.stdout.strip()
    if made.exit_code != 0 or not size.isdigit():
        said = made.stderr.decode("utf-8", "replace").strip() or made.error
        raise NoCommits(f"The agent's git could not give its commits away: {said}")
    if size == b"0":
        return {}
    if int(size) > _MOST:
        raise NoCommits(f"The agent's commits take {int(size)} bytes, and at most {_MOST} are taken.")
    return await _take(await environment.read(bundle), git)


async def _take(content: bytes, git: Git) -> Mapping[str, str]:
    """Whatever it is: git checks every object's name, and its form, before there is a reference to it."""
    checked = Git(git_dir=git.git_dir, configuration={**git.configuration, "transfer.fsckObjects": "true"})
    with tempfile.TemporaryDirectory(dir=git.git_dir, prefix="bundle-") as directory:
        file = Path(directory, _BUNDLE)
        await asyncio.to_thread(file.write_bytes, content)
        try:
            listed = await checked.run("bundle", "unbundle", str(file))
        except GitFailed as error:
            raise NoCommits(f"The agent's commits could not be taken in: {error.said}") from error
    refs = dict(_refs(line) for line in listed.decode("utf-8", "surrogateescape").splitlines())
    heads = {
        name.removeprefix("refs/heads/"): commit for name, commit in refs.items() if name.startswith("refs/heads/")
    }
    for branch, commit in heads.items():
        await checked.run("update-ref", f"{AGENTS}{branch}", commit)
    return heads


def _refs(line: str) -> tuple[str, str]:
    commit, _, name = line.partition(" ")
    return name, commit
