"""Collects the agent's own commits as a git bundle, which git creates inside the environment and the host imports.

The agent's index is collected too: as a git tree, whose objects come in a pack of their own. The host never reads the
agent's git directory. The reported names are untrusted. A branch is accepted only if the host has its complete commit
after the import, and an index only if the host has its complete tree.
"""

import asyncio
import re
import shlex
from collections.abc import Sequence
from typing import Final

import structlog

from footplate.domain.errors import Permanent
from footplate.domain.files.snapshots import (
    COMMITTED_FILES,
    EMPTY_TREE,
    HEAD,
    STAGED_FILES,
    CollectedCommits,
    Snapshot,
)
from footplate.domain.ports.harness import MAX_READ_BYTES, Environment
from footplate.trees.git import Git, GitFailed
from footplate.trees.projects.mirrors import read_commit_tree
from footplate.trees.projects.size_limits import remove_partial_packs
from footplate.trees.scratch_directory import scratch_directory
from footplate.trees.snapshots.full_snapshot import SNAPSHOT_GIT_CONFIGURATION

log = structlog.get_logger(__name__)

Commits = tuple[tuple[str, str], ...]

_MAX_BRANCHES: Final = 100
_SECONDS: Final = 120.0
_BUNDLE: Final = "commits.bundle"
_INDEX: Final = "staged"
_INDEX_PACK: Final = "pack"
_IMPORT_CONFIGURATION: Final = {**SNAPSHOT_GIT_CONFIGURATION, "pack.threads": "1"}
# A few bytes can expand to any size, so git stops itself before it allocates more at once.
_ALLOCATION_LIMIT: Final = {"GIT_ALLOC_LIMIT": "512m"}
MAX_CPU_SECONDS: Final = 30
"""A few kilobytes of deltas can cause hours of work. The same amount of text takes a second."""
_BRANCH_LINE: Final = re.compile(r"(?P<id>[0-9a-f]{40}) (?P<name>HEAD|refs/heads/[^\x00-\x20\x7f]{1,255})")
_INDEX_LINE: Final = re.compile(r"index (?P<id>[0-9a-f]{40}) (?P<size>[0-9]{1,15})")
# The agent's configuration may name programs. They are the agent's own, and run only inside its environment.
_BUNDLE_SCRIPT: Final = """
cd {tree} || exit 1
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null GIT_OPTIONAL_LOCKS=0 GIT_TERMINAL_PROMPT=0
export GIT_NO_REPLACE_OBJECTS=1 GIT_NO_LAZY_FETCH=1 LC_ALL=C GIT_DIR=.git GIT_WORK_TREE=.
ours() {{ git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.pager=cat -c protocol.allow=never "$@"; }}
mkdir -p {scratch} && rm -f {bundle}
head=$(ours rev-parse -q --verify 'HEAD^{{commit}}') && echo "$head HEAD"
ours for-each-ref --count={most} --format='%(objectname) %(refname)' refs/heads/ || exit 1
some=$(ours rev-list -n 1 --ignore-missing ${{head:+HEAD}} --branches --not {known}) || exit 1
staged() {{ (
    export GIT_INDEX_FILE={index}/index GIT_OBJECT_DIRECTORY={index}/objects
    export GIT_ALTERNATE_OBJECT_DIRECTORIES=.git/objects
    ours "$@"
) }}
index() {{
    if test -n "$head"; then ours diff-index --cached --quiet HEAD && return; else test -e .git/index || return; fi
    rm -rf {index} && mkdir -p {index}/objects || return
    test ! -e .git/index || cp .git/index {index}/index || return
    tree=$(staged write-tree) || return
    printf '%s\\n' "$tree" ${{head:+"^$head"}} |
        staged pack-objects -q --revs --thin --delta-base-offset --stdout > {index}/{pack} || return
    echo "index $tree $(wc -c < {index}/{pack})"
}}
index 2> /dev/null
test -z "$some" && exit 0
ours bundle create -q {bundle} --ignore-missing ${{head:+HEAD}} --branches --not {known} || exit 1
echo "$(wc -c < {bundle}) bytes"
"""


class CommitCollectionFailed(Permanent):
    code = "no_commits"


async def collect_commits(
    environment: Environment, inside_path: str, git: Git, base: str | None, last: Snapshot | None = None
) -> CollectedCommits:
    """Returns the agent's branches and `HEAD`, except those at `base`, and its index, after importing their objects to
    the host.

    `inside_path`: the tree's path inside the environment. `last`: the snapshot with the commits that were collected
    before.
    """
    bundle = f"{environment.scratch}/{_BUNDLE}"
    before = last or Snapshot(EMPTY_TREE)
    known = dict.fromkeys([*([] if base is None else [base]), *(commit for _, commit in before.commits)])
    result = await environment.run(["sh", "-c", _script(environment, inside_path, bundle, [*known])], timeout=_SECONDS)
    if result.exit_code != 0 or result.truncated:
        output = result.stderr.decode("utf-8", "replace").strip()[-500:] or result.error
        raise CommitCollectionFailed(f"git could not bundle the agent's commits: {output}")
    lines = result.stdout.decode("utf-8", "surrogateescape").splitlines()
    size = lines.pop() if lines and lines[-1].endswith(" bytes") else ""
    entries: list[str] = await _list_bundles(git, before.bundles)
    await import_missing_commits(git, before)  # the branches may be unchanged while this host has only their bundles
    if size:
        content = await _read_bundle(environment, bundle, size)
        await import_bundle(content, git)
        blob = (await git.run("hash-object", "-w", "--stdin", stdin=content)).decode().strip()
        entries.append(f"100644 blob {blob}\t{len(entries):06d}")
    commits = await _existing_commits(
        git, [(name, commit) for name, commit in _parse_branches(lines) if commit != base]
    )
    if not commits:
        entries = []
    if (head := dict(commits).get(HEAD)) is not None:
        entries.append(f"040000 tree {await read_commit_tree(git, head)}\t{COMMITTED_FILES}")
    if (index := await _import_index(environment, git, lines)) is not None:
        entries.append(f"040000 tree {index}\t{STAGED_FILES}")
    return CollectedCommits(commits, await _make_tree(git, entries) if entries else None)


async def _import_index(environment: Environment, git: Git, lines: Sequence[str]) -> str | None:
    """Returns the tree of the agent's index. None: it has the files of `HEAD`, has conflicts, or is not usable."""
    match = next((match for line in lines if (match := _INDEX_LINE.fullmatch(line))), None)
    if match is None:
        return None
    try:
        content = await _read_bundle(environment, f"{environment.scratch}/{_INDEX}/{_INDEX_PACK}", match["size"])
        await _import_pack(content, git)
    except CommitCollectionFailed as error:
        log.warning("the agent's index could not be collected", action="turn.no_index", reason=error.message)
        return None
    code, _ = await git.run_with_exit_code("cat-file", "-e", f"{match['id']}^{{tree}}", accept=(0, 1, 128))
    return match["id"] if code == 0 else None


async def import_missing_commits(git: Git, snapshot: Snapshot) -> None:
    """Imports missing commits of a snapshot from its bundles. The project's own commits are already present."""
    if snapshot.bundles is None or len(await _existing_commits(git, snapshot.commits)) == len(snapshot.commits):
        return
    for line in await _list_bundles(git, snapshot.bundles):
        await import_bundle(await git.run("cat-file", "blob", line.split()[2]), git)


async def _list_bundles(git: Git, bundles: str | None) -> list[str]:
    """Returns the bundles as lines of `ls-tree`. They are stored unchanged, and every import checks them again."""
    listed = "" if bundles is None else (await git.run("ls-tree", bundles)).decode()
    return [line for line in listed.splitlines() if line.split()[1] == "blob"]


async def _make_tree(git: Git, entries: Sequence[str]) -> str:
    return (await git.run("mktree", stdin="".join(f"{line}\n" for line in entries).encode())).decode().strip()


async def _read_bundle(environment: Environment, bundle: str, size: str) -> bytes:
    """`size`: as reported from inside."""
    content = b""
    try:
        if (count := int(size.removesuffix(" bytes"))) <= MAX_READ_BYTES:
            content = await environment.read(bundle)
            count = len(content)
    except (OSError, ValueError) as error:
        raise CommitCollectionFailed(f"The agent's commits could not be read: {error}") from error
    if count > MAX_READ_BYTES:
        raise CommitCollectionFailed(
            f"The agent's new commits have {count} bytes. The maximum is {MAX_READ_BYTES} bytes at a time."
        )
    return content


def _script(environment: Environment, tree: str, bundle: str, known: Sequence[str]) -> str:
    return _BUNDLE_SCRIPT.format(
        tree=shlex.quote(tree),
        scratch=shlex.quote(environment.scratch),
        bundle=shlex.quote(bundle),
        index=shlex.quote(f"{environment.scratch}/{_INDEX}"),
        pack=_INDEX_PACK,
        known=" ".join(known),
        most=_MAX_BRANCHES,
    )


async def import_bundle(content: bytes, git: Git) -> None:
    """Imports a bundle. git checks the format of each object, and that all objects it refers to exist, before it stores
    them. The bundle's header is not used.
    """
    _, found, pack = content[: 1 << 20].partition(b"\n\nPACK")
    if not content.startswith(b"# v") or not found or not pack:
        raise CommitCollectionFailed("The file that the agent's git created is not a bundle.")
    await _import_pack(content[content.index(b"\n\nPACK") + 2 :], git)


async def _import_pack(content: bytes, git: Git) -> None:
    with scratch_directory(git.git_dir) as scratch_dir:
        file = scratch_dir / "pack"
        await asyncio.to_thread(file.write_bytes, content)
        try:
            limited_git = Git(
                git_dir=git.git_dir,
                configuration=_IMPORT_CONFIGURATION,
                variables=_ALLOCATION_LIMIT,
                max_cpu_seconds=MAX_CPU_SECONDS,
            )
            await limited_git.run_with_files(
                "index-pack", "--stdin", "--fix-thin", "--strict", source=file, target=scratch_dir / "said"
            )
        except GitFailed as error:
            await asyncio.to_thread(remove_partial_packs, git.git_dir)
            raise CommitCollectionFailed(f"The agent's commits could not be imported: {error.output}") from error


def _parse_branches(lines: Sequence[str]) -> list[tuple[str, str]]:
    found = []
    for line in lines:
        if (match := _BRANCH_LINE.fullmatch(line)) is None:
            continue
        name = match["name"]
        if name.isprintable():  # the log cannot store unprintable names
            found.append((HEAD if name == HEAD else name.removeprefix("refs/heads/"), match["id"]))
    return found


async def _existing_commits(git: Git, named: Sequence[tuple[str, str]]) -> Commits:
    """Returns the commits that the host has."""
    query = "".join(f"{commit}\n" for _, commit in named).encode()
    if not query:
        return ()
    out = await git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=query)
    commits = {line.split()[0].decode() for line in out.splitlines() if line.endswith(b" commit")}
    return tuple(sorted((name, commit) for name, commit in named if commit in commits))
