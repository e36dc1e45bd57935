"""Tricks that make git run a program: by configuration, hooks and attributes, wherever git looks for them."""

from collections.abc import Sequence
from typing import Final

from bench.support.hostile_trees.attacked_tree import AttackedTree, Plant, Trick
from bench.support.hostile_trees.fixture import run_plain_git

_FETCH: Final = "git fetch -q"
_COMMIT: Final = "echo more >> file; git commit -qam x"
_EXPORT: Final = """git bundle create -q b crafted; git init -q --bare taker; git -C taker fetch -q ../b crafted
git -C taker ls-tree -r FETCH_HEAD | while read -r mode type name path
do mkdir -p "got/${path%/*}"; git -C taker cat-file blob "$name" > "got/$path"; done
git -C got status"""
_SUBMODULE: Final = "git -c protocol.file.allow=always submodule update -q --init; cat nested/secret"
_FILL_CREDENTIALS: Final = "printf 'protocol=https\\nhost=example.com\\n\\n' | git credential fill"


def _setting(key: str, **others: str) -> Plant:
    """Sets `key` to the agent's program. In the names of `others`, `_` stands for a dot."""

    def plant(attacked: AttackedTree) -> None:
        attacked.write_file("file")
        for other, value in others.items():
            attacked.set_config(other.replace("_", "."), value)
        attacked.set_config(key)

    return plant


def _attribute(line: str, key: str) -> Plant:
    def plant(attacked: AttackedTree) -> None:
        attacked.write_file(".gitattributes", f"{line}\n")
        attacked.write_file("file")
        attacked.set_config(key)

    return plant


def _hook(name: str) -> Plant:
    return lambda attacked: attacked.write_hook(name)


def _attributes_outside_tree(path: str) -> Plant:
    """Sets attributes in a file outside of the tree's `.gitattributes`."""

    def plant(attacked: AttackedTree) -> None:
        attacked.set_config("filter.evil.clean")
        attacked.write_file(path, "* filter=evil\n")
        if not path.startswith(".git/"):
            attacked.set_config("core.attributesFile", str(attacked.tree / path))
        attacked.write_file("file")

    return plant


def _included(key: str) -> Plant:
    def plant(attacked: AttackedTree) -> None:
        attacked.set_config("core.fsmonitor", file=attacked.write_file("evil.config", ""))
        attacked.set_config(key, "../evil.config")

    return plant


def _hooks_path(attacked: AttackedTree) -> None:
    attacked.write_hook("pre-commit", "hooks")
    attacked.set_config("core.hooksPath", "hooks")


def _merge_driver(attacked: AttackedTree) -> None:
    attacked.run_git("git switch -qc other && echo theirs > file && git commit -qam theirs")
    attacked.run_git("git switch -q - && echo ours > file && git commit -qam ours")
    attacked.write_file(".git/info/attributes", "* merge=evil\n")
    attacked.set_config("merge.evil.driver")


def _post_merge(attacked: AttackedTree) -> None:
    attacked.run_git(
        "git switch -qc other && echo theirs > merged && git add merged && git commit -qm theirs && git switch -q -"
    )
    attacked.write_hook("post-merge")


def _remote(attacked: AttackedTree, url: str) -> None:
    attacked.set_config("remote.origin.url", url)
    attacked.set_config("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")


def _ssh(attacked: AttackedTree) -> None:
    _remote(attacked, "ssh://example.com/x")
    attacked.set_config("core.sshCommand")


def _upload_pack(attacked: AttackedTree) -> None:
    _remote(attacked, str(attacked.tree))
    attacked.set_config("remote.origin.uploadpack")


def _ext(attacked: AttackedTree) -> None:
    _remote(attacked, f"ext::{attacked.program} x")
    attacked.set_config("protocol.ext.allow", "always")


def _proxy(attacked: AttackedTree) -> None:
    _remote(attacked, "git://example.com/x")
    attacked.set_config("core.gitProxy")


def _alternate_refs(attacked: AttackedTree) -> None:
    _remote(attacked, str(attacked.tree))
    attacked.set_config("core.alternateRefsCommand")


def _promisor(attacked: AttackedTree) -> None:
    _upload_pack(attacked)
    attacked.set_config("core.repositoryFormatVersion", "1")
    attacked.set_config("extensions.partialClone", "origin")
    attacked.set_config("remote.origin.promisor", "true")


def _signing(attacked: AttackedTree) -> None:
    attacked.set_config("commit.gpgSign", "true")
    attacked.set_config("gpg.program")


def _worktree_config(attacked: AttackedTree) -> None:
    attacked.set_config("core.repositoryFormatVersion", "1")
    attacked.set_config("extensions.worktreeConfig", "true")
    attacked.set_config("core.fsmonitor", file=attacked.write_file(".git/config.worktree", ""))


def _git_is_a_file(attacked: AttackedTree) -> None:
    attacked.set_config("core.fsmonitor")
    attacked.git_dir.rename(attacked.tree / "elsewhere")
    attacked.write_file(".git", "gitdir: elsewhere\n")


def _common_directory(attacked: AttackedTree) -> None:
    attacked.run_git("cp -a .git common")
    attacked.set_config("core.fsmonitor", file=attacked.tree / "common" / "config")
    attacked.write_file(".git/commondir", "../common\n")


def _linked_worktree(attacked: AttackedTree) -> None:
    """Makes the tree a worktree of a repository inside the tree."""
    attacked.set_config("core.fsmonitor")
    attacked.git_dir.rename(attacked.tree / "main")
    attacked.run_git("mkdir -p main/worktrees/x && cp main/HEAD main/index main/worktrees/x")
    attacked.write_file("main/worktrees/x/commondir", "../..\n")
    attacked.write_file("main/worktrees/x/gitdir", f"{attacked.tree}/.git\n")
    attacked.write_file(".git", f"gitdir: {attacked.tree}/main/worktrees/x\n")


def _nested(attacked: AttackedTree) -> None:
    repository = attacked.create_nested_repository()
    attacked.run_git("git -c advice.addEmbeddedRepo=false add nested")
    attacked.set_config("core.fsmonitor", file=repository / ".git" / "config")


def _module(attacked: AttackedTree, url: str) -> None:
    attacked.write_file(".gitmodules", f'[submodule "nested"]\n\tpath = nested\n\turl = {url}\n')


def _submodule_update(attacked: AttackedTree) -> None:
    attacked.create_nested_repository(commits=2)
    first = attacked.run_git("git -C nested rev-parse HEAD~1").strip()
    attacked.run_git(f"git update-index --add --cacheinfo 160000,{first},nested")
    _module(attacked, "./nested")
    attacked.set_config("submodule.nested.url", str(attacked.tree / "nested"))
    attacked.set_config("submodule.nested.update", f"!{attacked.program}")


def _submodule_url(attacked: AttackedTree) -> None:
    outside = attacked.fixture.outside / "repository"
    commit = run_plain_git(outside, "git rev-parse HEAD").strip()
    attacked.run_git(f"git update-index --add --cacheinfo 160000,{commit},nested")
    _module(attacked, str(outside))


def _bare_inside(attacked: AttackedTree) -> None:
    attacked.run_git("git init -q --bare bare")
    config = attacked.tree / "bare" / "config"
    attacked.set_config("core.bare", "false", file=config)
    attacked.set_config("core.worktree", str(attacked.tree), file=config)
    attacked.set_config("core.fsmonitor", file=config)


def _literal(attacked: AttackedTree, kind: str, content: bytes) -> str:
    file = attacked.tree / "object"
    file.write_bytes(content)
    name = attacked.run_git(f"git hash-object -w --literally -t {kind} object").strip()
    file.unlink()
    return name


def _git_directory_in_a_tree(attacked: AttackedTree) -> None:
    """Creates a commit whose tree has a `.git`, in a branch that the host would import as a bundle."""
    config = f'[core]\n\tfsmonitor = "{attacked.program}"\n'
    files = {"HEAD": "ref: refs/heads/main\n", "config": config}
    blobs = {name: _literal(attacked, "blob", text.encode()) for name, text in files.items()}
    keep = b"100644 keep\0" + bytes.fromhex(blobs["HEAD"])
    empty = bytes.fromhex(_literal(attacked, "tree", keep))
    inner = b"".join(b"100644 %s\0" % name.encode() + bytes.fromhex(blob) for name, blob in sorted(blobs.items()))
    inner += b"".join(b"40000 %s\0" % name + empty for name in (b"objects", b"refs"))
    outer = _literal(attacked, "tree", b"40000 .git\0" + bytes.fromhex(_literal(attacked, "tree", inner)))
    commit = attacked.run_git(f"git commit-tree -m x -p HEAD {outer}").strip()
    attacked.run_git(f"git update-ref refs/heads/crafted {commit}")


TRICKS: Final[Sequence[Trick]] = (
    Trick(name="core.fsmonitor", plant=_setting("core.fsmonitor"), plain_git_script="git status"),
    Trick(name="filter clean", plant=_attribute("* filter=evil", "filter.evil.clean"), plain_git_script="git add -A"),
    Trick(
        name="filter smudge",
        plant=_attribute("* filter=evil", "filter.evil.smudge"),
        plain_git_script="rm other; git checkout other",
    ),
    Trick(
        name="filter process", plant=_attribute("* filter=evil", "filter.evil.process"), plain_git_script="git add -A"
    ),
    Trick(
        name="attributes of the git directory",
        plant=_attributes_outside_tree(".git/info/attributes"),
        plain_git_script="git add -A",
    ),
    Trick(name="core.attributesFile", plant=_attributes_outside_tree("evil.attributes"), plain_git_script="git add -A"),
    Trick(name="textconv", plant=_attribute("* diff=evil", "diff.evil.textconv"), plain_git_script="git diff"),
    Trick(name="diff driver", plant=_attribute("* diff=evil", "diff.evil.command"), plain_git_script="git diff"),
    Trick(name="diff.external", plant=_setting("diff.external"), plain_git_script="git diff"),
    Trick(name="merge driver", plant=_merge_driver, plain_git_script="git merge -q other"),
    Trick(name="pre-commit hook", plant=_hook("pre-commit"), plain_git_script=_COMMIT),
    Trick(name="post-checkout hook", plant=_hook("post-checkout"), plain_git_script="git checkout -q -b x"),
    Trick(
        name="post-index-change hook", plant=_hook("post-index-change"), plain_git_script="echo x > file; git add -A"
    ),
    Trick(name="post-merge hook", plant=_post_merge, plain_git_script="git merge -q other"),
    Trick(
        name="reference-transaction hook",
        plant=_hook("reference-transaction"),
        plain_git_script="git update-ref refs/heads/x HEAD",
    ),
    Trick(name="pre-receive hook", plant=_hook("pre-receive"), plain_git_script="git push -q . HEAD:refs/heads/x"),
    Trick(name="core.hooksPath", plant=_hooks_path, plain_git_script=_COMMIT),
    Trick(name="include.path", plant=_included("include.path"), plain_git_script="git status"),
    Trick(name="includeIf", plant=_included("includeIf.gitdir:/**.path"), plain_git_script="git status"),
    Trick(name="core.sshCommand", plant=_ssh, plain_git_script=_FETCH),
    Trick(name="remote.uploadpack", plant=_upload_pack, plain_git_script=_FETCH),
    Trick(name="ext:: remote", plant=_ext, plain_git_script=_FETCH),
    Trick(name="core.gitProxy", plant=_proxy, plain_git_script=_FETCH),
    Trick(name="core.alternateRefsCommand", plant=_alternate_refs, plain_git_script=_FETCH),
    Trick(name="lazy fetch of a partial clone", plant=_promisor, plain_git_script=f"git cat-file -p {'1' * 40}"),
    Trick(name="credential.helper", plant=_setting("credential.helper"), plain_git_script=_FILL_CREDENTIALS),
    Trick(name="core.askPass", plant=_setting("core.askPass"), plain_git_script=_FILL_CREDENTIALS),
    Trick(name="core.editor", plant=_setting("core.editor"), plain_git_script="git commit -a"),
    Trick(name="gpg.program", plant=_signing, plain_git_script=_COMMIT),
    Trick(name="tar.*.command", plant=_setting("tar.evil.command"), plain_git_script="git archive --format=evil HEAD"),
    Trick(
        name="trailer.*.cmd",
        plant=_setting("trailer.evil.cmd", trailer_evil_key="Evil"),
        plain_git_script="echo x | git interpret-trailers --trailer evil=1",
    ),
    Trick(name="config.worktree", plant=_worktree_config, plain_git_script="git status"),
    Trick(name=".git as a file", plant=_git_is_a_file, plain_git_script="git status", in_project=False),
    Trick(name="commondir", plant=_common_directory, plain_git_script="git status", in_project=False),
    Trick(name="linked worktree", plant=_linked_worktree, plain_git_script="git status", in_project=False),
    Trick(name="nested repository", plant=_nested, plain_git_script="git status"),
    Trick(name="submodule update command", plant=_submodule_update, plain_git_script="git submodule update"),
    Trick(name="submodule url", plant=_submodule_url, plain_git_script=_SUBMODULE),
    Trick(name="bare repository inside", plant=_bare_inside, plain_git_script="git -C bare status"),
    Trick(
        name="crafted bundle: a commit with a .git",
        plant=_git_directory_in_a_tree,
        plain_git_script=_EXPORT,
        in_project=False,
    ),
)
