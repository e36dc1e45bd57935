"""Tricks that make git run a program: by configuration, hooks and attributes, wherever git looks for them."""

from collections.abc import Sequence
from typing import Final

from bench.support.hostile_trees.ground import plain
from bench.support.hostile_trees.lair import Lair, Plant, Trick

_FETCH: Final = "git fetch -q"
_COMMIT: Final = "echo more >> file; git commit -qam x"
_EXPORT: Final = """git bundle create -q b crafted; git init -q --bare taker; git -C taker fetch -q ../b crafted
git -C taker ls-tree -r FETCH_HEAD | while read -r mode type name path
do mkdir -p "got/${path%/*}"; git -C taker cat-file blob "$name" > "got/$path"; done
git -C got status"""
_SUBMODULE: Final = "git -c protocol.file.allow=always submodule update -q --init; cat nested/secret"
_ASK: Final = "printf 'protocol=https\\nhost=example.com\\n\\n' | git credential fill"


def _setting(key: str, **others: str) -> Plant:
    """Sets `key` to the agent's program. In the names of `others`, `_` stands for a dot."""

    def plant(lair: Lair) -> None:
        lair.write("file")
        for other, value in others.items():
            lair.config(other.replace("_", "."), value)
        lair.config(key)

    return plant


def _attribute(line: str, key: str) -> Plant:
    def plant(lair: Lair) -> None:
        lair.write(".gitattributes", f"{line}\n")
        lair.write("file")
        lair.config(key)

    return plant


def _hook(name: str) -> Plant:
    return lambda attacked: attacked.hook(name)


def _named_elsewhere(place: str) -> Plant:
    """Sets attributes in a file outside of the tree's `.gitattributes`."""

    def plant(lair: Lair) -> None:
        lair.config("filter.evil.clean")
        lair.write(place, "* filter=evil\n")
        if not place.startswith(".git/"):
            lair.config("core.attributesFile", str(lair.tree / place))
        lair.write("file")

    return plant


def _included(key: str) -> Plant:
    def plant(lair: Lair) -> None:
        lair.config("core.fsmonitor", file=lair.write("evil.config", ""))
        lair.config(key, "../evil.config")

    return plant


def _hooks_path(lair: Lair) -> None:
    lair.hook("pre-commit", "hooks")
    lair.config("core.hooksPath", "hooks")


def _merge_driver(lair: Lair) -> None:
    lair.git("git switch -qc other && echo theirs > file && git commit -qam theirs")
    lair.git("git switch -q - && echo ours > file && git commit -qam ours")
    lair.write(".git/info/attributes", "* merge=evil\n")
    lair.config("merge.evil.driver")


def _post_merge(lair: Lair) -> None:
    lair.git(
        "git switch -qc other && echo theirs > merged && git add merged && git commit -qm theirs && git switch -q -"
    )
    lair.hook("post-merge")


def _remote(lair: Lair, url: str) -> None:
    lair.config("remote.origin.url", url)
    lair.config("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")


def _ssh(lair: Lair) -> None:
    _remote(lair, "ssh://example.com/x")
    lair.config("core.sshCommand")


def _upload_pack(lair: Lair) -> None:
    _remote(lair, str(lair.tree))
    lair.config("remote.origin.uploadpack")


def _ext(lair: Lair) -> None:
    _remote(lair, f"ext::{lair.program} x")
    lair.config("protocol.ext.allow", "always")


def _proxy(lair: Lair) -> None:
    _remote(lair, "git://example.com/x")
    lair.config("core.gitProxy")


def _alternate_refs(lair: Lair) -> None:
    _remote(lair, str(lair.tree))
    lair.config("core.alternateRefsCommand")


def _promisor(lair: Lair) -> None:
    _upload_pack(lair)
    lair.config("core.repositoryFormatVersion", "1")
    lair.config("extensions.partialClone", "origin")
    lair.config("remote.origin.promisor", "true")


def _signing(lair: Lair) -> None:
    lair.config("commit.gpgSign", "true")
    lair.config("gpg.program")


def _worktree_config(lair: Lair) -> None:
    lair.config("core.repositoryFormatVersion", "1")
    lair.config("extensions.worktreeConfig", "true")
    lair.config("core.fsmonitor", file=lair.write(".git/config.worktree", ""))


def _git_is_a_file(lair: Lair) -> None:
    lair.config("core.fsmonitor")
    lair.git_dir.rename(lair.tree / "elsewhere")
    lair.write(".git", "gitdir: elsewhere\n")


def _common_directory(lair: Lair) -> None:
    lair.git("cp -a .git common")
    lair.config("core.fsmonitor", file=lair.tree / "common" / "config")
    lair.write(".git/commondir", "../common\n")


def _linked_worktree(lair: Lair) -> None:
    """Makes the tree a worktree of a repository inside the tree."""
    lair.config("core.fsmonitor")
    lair.git_dir.rename(lair.tree / "main")
    lair.git("mkdir -p main/worktrees/x && cp main/HEAD main/index main/worktrees/x")
    lair.write("main/worktrees/x/commondir", "../..\n")
    lair.write("main/worktrees/x/gitdir", f"{lair.tree}/.git\n")
    lair.write(".git", f"gitdir: {lair.tree}/main/worktrees/x\n")


def _nested(lair: Lair) -> None:
    at = lair.nested()
    lair.git("git -c advice.addEmbeddedRepo=false add nested")
    lair.config("core.fsmonitor", file=at / ".git" / "config")


def _module(lair: Lair, url: str) -> None:
    lair.write(".gitmodules", f'[submodule "nested"]\n\tpath = nested\n\turl = {url}\n')


def _submodule_update(lair: Lair) -> None:
    lair.nested(commits=2)
    first = lair.git("git -C nested rev-parse HEAD~1").strip()
    lair.git(f"git update-index --add --cacheinfo 160000,{first},nested")
    _module(lair, "./nested")
    lair.config("submodule.nested.url", str(lair.tree / "nested"))
    lair.config("submodule.nested.update", f"!{lair.program}")


def _submodule_url(lair: Lair) -> None:
    outside = lair.ground.outside / "repository"
    commit = plain(outside, "git rev-parse HEAD").strip()
    lair.git(f"git update-index --add --cacheinfo 160000,{commit},nested")
    _module(lair, str(outside))


def _bare_inside(lair: Lair) -> None:
    lair.git("git init -q --bare bare")
    config = lair.tree / "bare" / "config"
    lair.config("core.bare", "false", file=config)
    lair.config("core.worktree", str(lair.tree), file=config)
    lair.config("core.fsmonitor", file=config)


def _literal(lair: Lair, kind: str, content: bytes) -> str:
    file = lair.tree / "object"
    file.write_bytes(content)
    name = lair.git(f"git hash-object -w --literally -t {kind} object").strip()
    file.unlink()
    return name


def _git_directory_in_a_tree(lair: Lair) -> None:
    """Creates a commit whose tree has a `.git`, in a branch that the host would import as a bundle."""
    config = f'[core]\n\tfsmonitor = "{lair.program}"\n'
    files = {"HEAD": "ref: refs/heads/main\n", "config": config}
    blobs = {name: _literal(lair, "blob", text.encode()) for name, text in files.items()}
    keep = b"100644 keep\0" + bytes.fromhex(blobs["HEAD"])
    empty = bytes.fromhex(_literal(lair, "tree", keep))
    inner = b"".join(b"100644 %s\0" % name.encode() + bytes.fromhex(blob) for name, blob in sorted(blobs.items()))
    inner += b"".join(b"40000 %s\0" % name + empty for name in (b"objects", b"refs"))
    outer = _literal(lair, "tree", b"40000 .git\0" + bytes.fromhex(_literal(lair, "tree", inner)))
    commit = lair.git(f"git commit-tree -m x -p HEAD {outer}").strip()
    lair.git(f"git update-ref refs/heads/crafted {commit}")


TRICKS: Final[Sequence[Trick]] = (
    Trick(name="core.fsmonitor", plant=_setting("core.fsmonitor"), naive="git status"),
    Trick(name="filter clean", plant=_attribute("* filter=evil", "filter.evil.clean"), naive="git add -A"),
    Trick(
        name="filter smudge",
        plant=_attribute("* filter=evil", "filter.evil.smudge"),
        naive="rm other; git checkout other",
    ),
    Trick(name="filter process", plant=_attribute("* filter=evil", "filter.evil.process"), naive="git add -A"),
    Trick(name="attributes of the git directory", plant=_named_elsewhere(".git/info/attributes"), naive="git add -A"),
    Trick(name="core.attributesFile", plant=_named_elsewhere("evil.attributes"), naive="git add -A"),
    Trick(name="textconv", plant=_attribute("* diff=evil", "diff.evil.textconv"), naive="git diff"),
    Trick(name="diff driver", plant=_attribute("* diff=evil", "diff.evil.command"), naive="git diff"),
    Trick(name="diff.external", plant=_setting("diff.external"), naive="git diff"),
    Trick(name="merge driver", plant=_merge_driver, naive="git merge -q other"),
    Trick(name="pre-commit hook", plant=_hook("pre-commit"), naive=_COMMIT),
    Trick(name="post-checkout hook", plant=_hook("post-checkout"), naive="git checkout -q -b x"),
    Trick(name="post-index-change hook", plant=_hook("post-index-change"), naive="echo x > file; git add -A"),
    Trick(name="post-merge hook", plant=_post_merge, naive="git merge -q other"),
    Trick(
        name="reference-transaction hook",
        plant=_hook("reference-transaction"),
        naive="git update-ref refs/heads/x HEAD",
    ),
    Trick(name="pre-receive hook", plant=_hook("pre-receive"), naive="git push -q . HEAD:refs/heads/x"),
    Trick(name="core.hooksPath", plant=_hooks_path, naive=_COMMIT),
    Trick(name="include.path", plant=_included("include.path"), naive="git status"),
    Trick(name="includeIf", plant=_included("includeIf.gitdir:/**.path"), naive="git status"),
    Trick(name="core.sshCommand", plant=_ssh, naive=_FETCH),
    Trick(name="remote.uploadpack", plant=_upload_pack, naive=_FETCH),
    Trick(name="ext:: remote", plant=_ext, naive=_FETCH),
    Trick(name="core.gitProxy", plant=_proxy, naive=_FETCH),
    Trick(name="core.alternateRefsCommand", plant=_alternate_refs, naive=_FETCH),
    Trick(name="lazy fetch of a partial clone", plant=_promisor, naive=f"git cat-file -p {'1' * 40}"),
    Trick(name="credential.helper", plant=_setting("credential.helper"), naive=_ASK),
    Trick(name="core.askPass", plant=_setting("core.askPass"), naive=_ASK),
    Trick(name="core.editor", plant=_setting("core.editor"), naive="git commit -a"),
    Trick(name="gpg.program", plant=_signing, naive=_COMMIT),
    Trick(name="tar.*.command", plant=_setting("tar.evil.command"), naive="git archive --format=evil HEAD"),
    Trick(
        name="trailer.*.cmd",
        plant=_setting("trailer.evil.cmd", trailer_evil_key="Evil"),
        naive="echo x | git interpret-trailers --trailer evil=1",
    ),
    Trick(name="config.worktree", plant=_worktree_config, naive="git status"),
    Trick(name=".git as a file", plant=_git_is_a_file, naive="git status", in_project=False),
    Trick(name="commondir", plant=_common_directory, naive="git status", in_project=False),
    Trick(name="linked worktree", plant=_linked_worktree, naive="git status", in_project=False),
    Trick(name="nested repository", plant=_nested, naive="git status"),
    Trick(name="submodule update command", plant=_submodule_update, naive="git submodule update"),
    Trick(name="submodule url", plant=_submodule_url, naive=_SUBMODULE),
    Trick(name="bare repository inside", plant=_bare_inside, naive="git -C bare status"),
    Trick(
        name="crafted bundle: a commit with a .git",
        plant=_git_directory_in_a_tree,
        naive=_EXPORT,
        in_project=False,
    ),
)
