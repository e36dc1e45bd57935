"""Collects an agent's own commits as a bundle. git inside the environment creates it, with only the agent's rights, and
the host imports its contents. The host never reads the agent's git directory.

The branch names reported from inside are untrusted. The host accepts one only if it has the complete commit.
"""

import asyncio
import re
import shlex
from collections.abc import Sequence
from typing import Final

from footplate.domain.errors import Permanent
from footplate.domain.ports import MOST_READ, Environment
from footplate.domain.snapshots import EMPTY, HEAD, Collected, Snapshot
from footplate.trees.git import Git, GitFailed
from footplate.trees.scratch import scratch
from footplate.trees.size_limits import remove_partial_packs
from footplate.trees.snapshots import CONFIGURATION

Commits = tuple[tuple[str, str], ...]

_MOST_BRANCHES: Final = 100
_SECONDS: Final = 120.0
_BUNDLE: Final = "commits.bundle"
_TAKING: Final = {**CONFIGURATION, "pack.threads": "1"}
# A few bytes can expand to any size, so git stops itself before it allocates more at once.
_WITHIN: Final = {"GIT_ALLOC_LIMIT": "512m"}
PROCESSOR_SECONDS: Final = 30
"""A few kilobytes of deltas can cause hours of work. The same amount of text takes a second."""
_LINE: Final = re.compile(r"(?P<id>[0-9a-f]{40}) (?P<name>HEAD|refs/heads/[^\x00-\x20\x7f]{1,255})")
# The agent's configuration may name programs. They are the agent's own, and run only inside its environment.
_MAKE: Final = """
cd {tree} || exit 1
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0
export GIT_NO_REPLACE_OBJECTS=1 GIT_NO_LAZY_FETCH=1 LC_ALL=C GIT_DIR=.git GIT_WORK_TREE=.
ours() {{ git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.pager=cat -c protocol.allow=never "$@"; }}
mkdir -p {scratch} && rm -f {bundle}
head=$(ours rev-parse -q --verify 'HEAD^{{commit}}') && echo "$head HEAD"
ours for-each-ref --count={most} --format='%(objectname) %(refname)' refs/heads/ || exit 1
some=$(ours rev-list -n 1 --ignore-missing ${{head:+HEAD}} --branches --not {known}) || exit 1
test -z "$some" && exit 0
ours bundle create -q {bundle} --ignore-missing ${{head:+HEAD}} --branches --not {known} || exit 1
echo "$(wc -c < {bundle}) bytes"
"""


class NoCommits(Permanent):
    code = "no_commits"


async def collect(
    environment: Environment, tree: str, git: Git, base: str | None, last: Snapshot | None = None
) -> Collected:
    """Returns the agent's branches and `HEAD`, except those at `base`, after importing their objects to the host.

    `tree`: the tree's path inside the environment. `last`: the snapshot with the commits that were collected before.
    """
    bundle = f"{environment.scratch}/{_BUNDLE}"
    before = last or Snapshot(EMPTY)
    known = dict.fromkeys([*([] if base is None else [base]), *(commit for _, commit in before.commits)])
    made = await environment.run(["sh", "-c", _script(environment, tree, bundle, [*known])], timeout=_SECONDS)
    if made.exit_code != 0 or made.truncated:
        said = made.stderr.decode("utf-8", "replace").strip()[-500:] or made.error
        raise NoCommits(f"git could not bundle the agent's commits: {said}")
    lines = made.stdout.decode("utf-8", "surrogateescape").splitlines()
    size = lines.pop() if lines and lines[-1].endswith(" bytes") else ""
    bundles = before.bundles
    await ensure(git, before)  # the branches may be unchanged while this host has only their bundles
    if size:
        content = await _read(environment, bundle, size)
        await take(content, git)
        bundles = await _beside(git, bundles, content)
    commits = await _present(git, [(name, commit) for name, commit in _named(lines) if commit != base])
    return Collected(commits, bundles if commits else None)


async def ensure(git: Git, snapshot: Snapshot) -> None:
    """Imports missing commits of a snapshot from its bundles. The project's own commits are already present."""
    if snapshot.bundles is None or len(await _present(git, snapshot.commits)) == len(snapshot.commits):
        return
    for line in (await git.run("ls-tree", snapshot.bundles)).decode().splitlines():
        await take(await git.run("cat-file", "blob", line.split()[2]), git)


async def _beside(git: Git, bundles: str | None, content: bytes) -> str:
    """Returns a tree with one more bundle. Bundles are stored unchanged, and every import checks them again."""
    before = b"" if bundles is None else await git.run("ls-tree", bundles)
    blob = (await git.run("hash-object", "-w", "--stdin", stdin=content)).decode().strip()
    line = f"100644 blob {blob}\t{len(before.splitlines()):06d}\n".encode()
    return (await git.run("mktree", stdin=before + line)).decode().strip()


async def _read(environment: Environment, bundle: str, size: str) -> bytes:
    """`size`: as reported from inside."""
    try:
        if (count := int(size.removesuffix(" bytes"))) <= MOST_READ:
            content = await environment.read(bundle)
            count = len(content)
    except (OSError, ValueError) as error:
        raise NoCommits(f"The agent's commits could not be read: {error}") from error
    if count > MOST_READ:
        raise NoCommits(f"The agent's new commits have {count} bytes. The maximum is {MOST_READ} bytes at a time.")
    return content


def _script(environment: Environment, tree: str, bundle: str, known: Sequence[str]) -> str:
    return _MAKE.format(
        tree=shlex.quote(tree),
        scratch=shlex.quote(environment.scratch),
        bundle=shlex.quote(bundle),
        known=" ".join(known),
        most=_MOST_BRANCHES,
    )


async def take(content: bytes, git: Git) -> None:
    """Imports a bundle. git checks the format of each object, and that all objects it refers to exist, before it stores
    them. The bundle's header is not used.
    """
    _, found, pack = content[: 1 << 20].partition(b"\n\nPACK")
    if not content.startswith(b"# v") or not found or not pack:
        raise NoCommits("The file that the agent's git created is not a bundle.")
    start = content.index(b"\n\nPACK") + 2
    with scratch(git.git_dir) as place:
        file = place / "pack"
        await asyncio.to_thread(file.write_bytes, content[start:])
        try:
            taking = Git(
                git_dir=git.git_dir, configuration=_TAKING, variables=_WITHIN, max_cpu_seconds=PROCESSOR_SECONDS
            )
            await taking.run_with_files("index-pack", "--stdin", "--fix-thin", "--strict", source=file, target=place / "said")
        except GitFailed as error:
            await asyncio.to_thread(remove_partial_packs, git.git_dir)
            raise NoCommits(f"The agent's commits could not be imported: {error.output}") from error


def _named(lines: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for line in lines:
        if (match := _LINE.fullmatch(line)) is None:
            continue
        name = match["name"]
        if name.isprintable():  # the log cannot store unprintable names
            found.append((HEAD if name == HEAD else name.removeprefix("refs/heads/"), match["id"]))
    return found


async def _present(git: Git, named: Sequence[tuple[str, str]]) -> Commits:
    """Returns the commits that the host has."""
    asked = "".join(f"{commit}\n" for _, commit in named).encode()
    if not asked:
        return ()
    out = await git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
    commits = {line.split()[0].decode() for line in out.splitlines() if line.endswith(b" commit")}
    return tuple(sorted((name, commit) for name, commit in named if commit in commits))
