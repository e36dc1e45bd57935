"""Inspects the directories that the user passes with `run --project`, before anything is created on the server.

A directory inside a repository selects this repository, and the session starts in the directory. Uncommitted changes
can be stored in a commit for the session. The commit is on no branch, and a temporary index is used for it, so the
user's index, branches and files stay as they are.
"""

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.cli.actions.user_git import decode_output, require_success, run_git
from footplate.client import ClientError

_READ_ANY_OWNER: Final = ("-c", "safe.directory=*")
_RUN_NO_HOOKS: Final = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
_IDENTITY: Final = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "Footplate"), ("EMAIL", "footplate@footplate.invalid"))
}
_COMMIT_MESSAGE: Final = "Uncommitted changes"


@dataclass(frozen=True, slots=True)
class ProjectDirectory:
    repository: Path
    """A repository, or an empty directory in which the server creates one."""
    subdirectory: str = ""
    """The path of the directory in the repository. Empty: the repository itself."""

    @classmethod
    def find(cls, given: str) -> "ProjectDirectory":
        """Raises `ClientError` if no session can work on the directory."""
        path = Path(given).resolve()
        if not path.is_dir():
            raise ClientError(
                f"{path} is not a directory.", help_text="Pass a git repository, or create the directory first."
            )
        command = ("rev-parse", "--absolute-git-dir", "--is-inside-work-tree", "--show-toplevel")
        found = run_git(path, *_READ_ANY_OWNER, *command)
        git_dir, is_inside, top = [*os.fsdecode(found.stdout).splitlines(), "", "", ""][:3]
        if not git_dir:
            _check_empty(path, decode_output(found.stderr))
            return cls(path)
        if is_inside != "true" and Path(git_dir) != path:
            raise ClientError(
                f"{path} is inside the git directory {git_dir}.", help_text="Pass the directory of the repository."
            )
        repository = Path(top) if top else path
        if top and (repository / ".git").is_symlink():
            raise _link_error(repository)
        if top and not (repository / ".git").is_dir():
            raise _worktree_error(repository, Path(git_dir))
        return cls(repository, "" if path == repository else path.relative_to(repository).as_posix())

    def list_uncommitted(self) -> list[str]:
        """Returns the files that differ from the last commit, without those that git ignores."""
        command = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
        found = run_git(self.repository, *_RUN_NO_HOOKS, *command, extra_env={"GIT_OPTIONAL_LOCKS": "0"})
        return [line[3:].decode("utf-8", "backslashreplace") for line in found.stdout.split(b"\0") if line]

    def commit_uncommitted(self) -> str:
        """Returns the id of a commit with the files as they are now, without those that git ignores."""
        with tempfile.TemporaryDirectory(prefix="footplate-") as scratch_dir:
            index = require_success(run_git(self.repository, "rev-parse", "--git-path", "index"), "find the index")
            user_index = self.repository / os.fsdecode(index.rstrip(b"\n"))
            if user_index.exists():
                shutil.copyfile(user_index, Path(scratch_dir, "index"))
            git_env = {"GIT_INDEX_FILE": str(Path(scratch_dir, "index")), **_IDENTITY}
            added = run_git(self.repository, *_RUN_NO_HOOKS, "add", "--all", extra_env=git_env)
            require_success(added, "read your uncommitted changes")
            tree = decode_output(
                require_success(run_git(self.repository, *_RUN_NO_HOOKS, "write-tree", extra_env=git_env), "store them")
            )
        head = run_git(self.repository, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        parents = ["-p", decode_output(head.stdout)] if head.returncode == 0 else []
        made = run_git(self.repository, "commit-tree", tree, *parents, "-m", _COMMIT_MESSAGE, extra_env=_IDENTITY)
        return decode_output(require_success(made, "commit your uncommitted changes"))

    def has_subdirectory(self, commit: str) -> bool:
        """Returns whether the commit has files in the subdirectory."""
        return run_git(self.repository, "cat-file", "-e", f"{commit}:{self.subdirectory}").returncode == 0


def _check_empty(path: Path, stderr: str) -> None:
    if "not a git repository" not in stderr:
        raise ClientError(f"git cannot read {path}: {stderr}", help_text="Fix the repository and try again.")
    if any(path.iterdir()):
        raise ClientError(
            f"{path} contains files but is not in a git repository.",
            help_text=f"Create a repository with `git init {path}` and commit the files that the session should start "
            "with, or omit --project to work in the directory itself.",
        )


def _link_error(repository: Path) -> ClientError:
    return ClientError(
        f"{repository / '.git'} is a symbolic link, which the server does not follow.",
        help_text="Pass the repository that the link points to.",
    )


def _worktree_error(repository: Path, git_dir: Path) -> ClientError:
    if git_dir.parent.name == "worktrees":
        return ClientError(
            f"{repository} is a linked worktree, which cannot be a project.",
            help_text=f"Pass the main checkout instead: --project {git_dir.parents[2]}",
        )
    return ClientError(
        f"{repository} is a submodule, or its git directory is elsewhere. It cannot be a project.",
        help_text="Pass the repository that contains it, or a clone.",
    )
