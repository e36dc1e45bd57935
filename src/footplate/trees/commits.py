"""An agent's own commits, brought to the host: as a bundle that git inside the environment makes, with no right that
the agent lacks, and that the host takes in by content alone. Nothing of the agent's git directory is read by the host.

What git inside says of branches is the agent's word. It counts as far as the host then has such a commit, whole.
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
# A few bytes may stand for any number: git ends itself before it takes more at once.
_WITHIN: Final = {"GIT_ALLOC_LIMIT": "512m"}
PROCESSOR_SECONDS: Final = 30
"""Some kilobytes of differences can stand for hours of work; as many of text take a second."""
_LINE: Final = re.compile(r"(?P<id>[0-9a-f]{40}) (?P<name>HEAD|refs/heads/[^\x00-\x20\x7f]{1,255})")
# Its own configuration may name programs; those are the agent's, and run nothing here.
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
    """The agent's branches and `HEAD`, but for those that are at `base`. Their objects are the host's by then.

    `tree`: as it is seen inside. `last`: with those that were collected before.
    """
    bundle = f"{environment.scratch}/{_BUNDLE}"
    before = last or Snapshot(EMPTY)
    known = dict.fromkeys([*([] if base is None else [base]), *(commit for _, commit in before.commits)])
    made = await environment.run(["sh", "-c", _script(environment, tree, bundle, [*known])], timeout=_SECONDS)
    if made.exit_code != 0 or made.truncated:
        said = made.stderr.decode("utf-8", "replace").strip()[-500:] or made.error
        raise NoCommits(f"The agent's git could not give its commits away: {said}")
    lines = made.stdout.decode("utf-8", "surrogateescape").splitlines()
    size = lines.pop() if lines and lines[-1].endswith(" bytes") else ""
    bundles = before.bundles
    await ensure(git, before)  # the agent's branches may be where they were, and this host has only the bundles
    if size:
        content = await _read(environment, bundle, size)
        await take(content, git)
        bundles = await _beside(git, bundles, content)
    commits = await _present(git, [(name, commit) for name, commit in _named(lines) if commit != base])
    return Collected(commits, bundles if commits else None)


async def ensure(git: Git, snapshot: Snapshot) -> None:
    """The commits of a snapshot, where there are only the bundles that they came in. The project's own are there."""
    if snapshot.bundles is None or len(await _present(git, snapshot.commits)) == len(snapshot.commits):
        return
    for line in (await git.run("ls-tree", snapshot.bundles)).decode().splitlines():
        await take(await git.run("cat-file", "blob", line.split()[2]), git)


async def _beside(git: Git, bundles: str | None, content: bytes) -> str:
    """A tree with one more. They are kept as they came: whoever takes them in checks them again."""
    before = b"" if bundles is None else await git.run("ls-tree", bundles)
    blob = (await git.run("hash-object", "-w", "--stdin", stdin=content)).decode().strip()
    line = f"100644 blob {blob}\t{len(before.splitlines()):06d}\n".encode()
    return (await git.run("mktree", stdin=before + line)).decode().strip()


async def _read(environment: Environment, bundle: str, size: str) -> bytes:
    """`size`: as it was told inside."""
    try:
        if (count := int(size.removesuffix(" bytes"))) <= MOST_READ:
            content = await environment.read(bundle)
            count = len(content)
    except (OSError, ValueError) as error:
        raise NoCommits(f"The agent's commits could not be read: {error}") from error
    if count > MOST_READ:
        raise NoCommits(f"The agent's new commits take {count} bytes, and at most {MOST_READ} are taken at once.")
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
    """Whatever it is: git checks each object's form, and that all that it refers to is there, before it is the host's.
    What the bundle's head says is not read.
    """
    _, found, pack = content[: 1 << 20].partition(b"\n\nPACK")
    if not content.startswith(b"# v") or not found or not pack:
        raise NoCommits("What the agent's git made is no bundle.")
    start = content.index(b"\n\nPACK") + 2
    with scratch(git.git_dir) as place:
        file = place / "pack"
        await asyncio.to_thread(file.write_bytes, content[start:])
        try:
            taking = Git(
                git_dir=git.git_dir, configuration=_TAKING, variables=_WITHIN, processor_seconds=PROCESSOR_SECONDS
            )
            await taking.convert("index-pack", "--stdin", "--fix-thin", "--strict", source=file, target=place / "said")
        except GitFailed as error:
            await asyncio.to_thread(remove_partial_packs, git.git_dir)
            raise NoCommits(f"The agent's commits could not be taken in: {error.said}") from error


def _named(lines: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for line in lines:
        if (match := _LINE.fullmatch(line)) is None:
            continue
        name = match["name"]
        if name.isprintable():  # the log could not keep another
            found.append((HEAD if name == HEAD else name.removeprefix("refs/heads/"), match["id"]))
    return found


async def _present(git: Git, named: Sequence[tuple[str, str]]) -> Commits:
    """Those that the host has, as commits."""
    asked = "".join(f"{commit}\n" for _, commit in named).encode()
    if not asked:
        return ()
    out = await git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
    commits = {line.split()[0].decode() for line in out.splitlines() if line.endswith(b" commit")}
    return tuple(sorted((name, commit) for name, commit in named if commit in commits))
