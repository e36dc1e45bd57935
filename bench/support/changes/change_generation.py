"""Generates change sets with hypothesis: a tree, and random changes to it."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from hypothesis import strategies as st

from bench.support.changes.tree_model import Content, Kind, Node, Tree, can_add

_LARGE: Final = 10_000_000
_NAMES: Final = (
    b"a", b"b", b"src", b"main.py", b"README", b"caf\xe9", b"na\xefve\xff", "\U0001f600".encode(), "日本語".encode(),
    b"with space", b" leading", b"trailing ", b"new\nline", b"tab\there", b'quo"te', b"back\\slash", b"-dash", b"*",
    b"[a]", b"%2Egit", b"#", b"~",
    b"a.b", b"..a", b"...", b"git~1", b".gitx", b"$(x)", b"\x01", b"\x7f",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ChangeSet:
    before: Tree
    after: Tree
    repositories: tuple[bytes, ...]
    """Directories that are each made a git repository with a commit, before or after the change."""
    kinds: Counter[str]
    """How often each action was applied."""


def _allowed(name: bytes) -> bool:
    return name not in {b".", b".."} and name.lower() not in {b".git", b".gitmodules", b".gitignore", b".gitattributes"}


names = st.one_of(
    st.sampled_from(_NAMES),
    st.binary(min_size=1, max_size=12).map(lambda name: name.replace(b"/", b"_").replace(b"\0", b"0")),
).filter(_allowed)
paths = st.lists(names, min_size=1, max_size=3).map(b"/".join)
seeds = st.integers(0, 1 << 30)
small = st.one_of(
    st.binary(max_size=400),
    st.lists(st.text(max_size=20), max_size=30).map(lambda lines: "\n".join(lines).encode("utf-8", "surrogatepass")),
    st.sampled_from([b"", b"\n", b"no end", b"one\r\ntwo\r\n", b"\xef\xbb\xbfbom\n", b"caf\xe9\n", b"$Id$\n", b"\0"]),
).map(Content)
medium = st.builds(lambda seed, size: Content(lines=size, seed=seed), seeds, st.integers(1, 3000))
noisy = st.builds(lambda seed, size: Content(noise=size, seed=seed), seeds, st.integers(1, 50_000))
large = st.one_of(
    st.builds(lambda seed: Content(noise=_LARGE, seed=seed), seeds),
    st.builds(lambda seed: Content(lines=_LARGE // 15, seed=seed), seeds),
)
contents = st.one_of(small, small, medium, noisy)
targets = st.binary(min_size=1, max_size=60).map(lambda target: Content(target.replace(b"\0", b"0")))
kinds: st.SearchStrategy[Kind] = st.sampled_from(["file", "file", "program"])
nodes = st.one_of(
    st.builds(Node, kinds, contents),
    st.builds(Node, kinds, contents),
    st.builds(lambda target: Node("link", target), targets),
)


@st.composite
def change_sets(draw: st.DrawFn) -> ChangeSet:
    before: Tree = {}
    for path, node in draw(st.lists(st.tuples(paths, nodes), max_size=15)):
        if can_add(before, path):
            before[path] = node
    if before and draw(st.integers(0, 19)) == 0:
        before[draw(st.sampled_from(sorted(before)))] = Node("file", draw(large))
    after = dict(before)
    done: Counter[str] = Counter()
    for action in draw(st.lists(st.sampled_from(_ACTIONS), min_size=1, max_size=12)):
        if _apply_action(draw, action, after):
            done[action] += 1
    if draw(st.integers(0, 19)) == 0:
        path = draw(paths)
        if can_add(after, path):
            after[path] = Node("file", draw(large))
            done["10 MB"] += 1
    directories = sorted({path.rpartition(b"/")[0] for path in after} - {b""})
    chosen = draw(st.lists(st.sampled_from(directories), max_size=2, unique=True)) if directories else []
    done["nested"] += len(chosen)
    return ChangeSet(before, after, tuple(chosen), done)


_ACTIONS: Final = ("write", "edit", "delete", "rename", "rename", "mode", "link", "swap")


def _apply_action(draw: st.DrawFn, action: str, tree: Tree) -> bool:
    if action == "write":
        return _put(tree, draw(paths), draw(nodes))
    if not tree:
        return False
    path = draw(st.sampled_from(sorted(tree)))
    node = tree[path]
    if action == "delete":
        del tree[path]
    elif action == "rename":
        target = draw(paths)
        del tree[path]
        if not _put(tree, target, node):
            tree[path] = node
            return False
    elif action == "link":
        tree[path] = Node("link", draw(targets))
    elif action == "swap":
        # A file becomes a directory.
        del tree[path]
        return _put(tree, path + b"/" + draw(names), node)
    elif node.kind == "link":
        return False
    elif action == "mode":
        tree[path] = Node("file" if node.kind == "program" else "program", node.content)
    else:
        tree[path] = Node(node.kind, _edit_content(draw, node.content))
    return True


def _put(tree: Tree, path: bytes, node: Node) -> bool:
    if not can_add(tree, path):
        return False
    tree[path] = node
    return True


def _edit_content(draw: st.DrawFn, content: Content) -> Content:
    """Returns the content with a small change in the middle. A large content is replaced by another large one."""
    if content.noise >= _LARGE or content.lines * 15 >= _LARGE:
        return draw(large)
    whole = content.bytes()
    offset = draw(st.integers(0, len(whole)))
    return Content(whole[:offset] + draw(st.binary(max_size=40)) + whole[offset + draw(st.integers(0, 40)) :])
