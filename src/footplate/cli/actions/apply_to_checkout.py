"""Applies a session's changes to the user's own checkout with the user's own git. Either all changes are applied or
none.

If a patch does not apply directly, a three-way merge is computed from the session's base, the session's result and the
files in the checkout. The merge uses a separate index and object directory, so the checkout is written only if there is
no conflict.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.cli.actions.user_git import decode_output, require_success, run_git
from footplate.client import ClientError

_MAX_REPORTED: Final = 20
_BUNDLE_REF: Final = "refs/heads/session"
_MISSING_BLOB: Final = "lacks the necessary blob"
_UNCOMMITTED_EXISTS: Final = "the session added it, and an uncommitted file with this name exists here"
_APPLY_ERROR: Final = re.compile(r"error: (?:patch failed: )?(.+?)(?::\d+)?(?:: (.*))?$")
_WRITE_ERROR: Final = re.compile(r"unable to write file '(.+)' mode \d+$")
_WRITE_ERROR_REASONS: Final = {
    "Directory not empty": "the session added it, and a directory with this name exists here",
    "Is a directory": "the session added it, and a directory with this name exists here",
    "Not a directory": "the session added it, and its parent directory is a file here",
}

_IN_THE_WAY: Final = frozenset({_UNCOMMITTED_EXISTS, *_WRITE_ERROR_REASONS.values()})


class PatchConflict(ClientError):
    code = "does_not_fit"


@dataclass(frozen=True, slots=True)
class FileBackup:
    """A backup of files, which is restored if a change to them fails midway."""

    files: Mapping[Path, Path | None]
    """The backup copy of each file. None if the file did not exist."""
    missing_directories: Sequence[Path]
    """Parent directories that did not exist, innermost first."""

    @classmethod
    def create(cls, root: Path, names: Iterable[bytes], backup_dir: Path) -> "FileBackup":
        files: dict[Path, Path | None] = {}
        missing: set[Path] = set()
        for number, path in enumerate(root / os.fsdecode(name) for name in sorted(names)):
            files[path] = backup = backup_dir / str(number) if _is_file(path) else None
            if backup is not None:
                shutil.copy2(path, backup, follow_symlinks=False)
            missing.update(each for each in path.parents if each.is_relative_to(root) and not each.is_dir())
        return cls(files, sorted(missing, key=lambda each: len(each.parts), reverse=True))

    def restore(self) -> None:
        for path, backup in self.files.items():
            if backup is None and _is_file(path):
                path.unlink()
        for directory in self.missing_directories:
            with suppress(OSError):
                directory.rmdir()
        for path, backup in self.files.items():
            if backup is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                shutil.copy2(backup, path, follow_symlinks=False)


@dataclass(frozen=True, slots=True)
class UserCheckout:
    root: Path

    @classmethod
    def find(cls, directory: Path) -> "UserCheckout":
        found = run_git(directory, "rev-parse", "--show-toplevel")
        if found.returncode != 0 or not found.stdout.strip():
            raise ClientError(
                f"{directory.absolute()} is not inside a checkout of a git repository.",
                help_text="Change to the checkout that should receive the changes, or pass it with --directory.",
            )
        return cls(Path(os.fsdecode(found.stdout.rstrip(b"\n"))))

    def find_commits(self, commits: Iterable[str]) -> set[str]:
        """Returns those of the commits that this repository has."""
        wanted = "".join(f"{commit}^{{commit}}\n" for commit in commits).encode()
        found = run_git(self.root, "cat-file", "--batch-check", stdin=wanted, extra_env={"GIT_NO_LAZY_FETCH": "1"})
        return {line.split(" ")[0] for line in decode_output(found.stdout).splitlines() if " commit " in line}

    def apply_patch(self, patch: Path, deleted: Sequence[str] = ()) -> bool:
        """Applies the patch and returns False if nothing had to be changed.

        Raises `PatchConflict` without any change if the patch conflicts with the checkout. `deleted` lists the files
        that the patch deletes, which may be missing already.
        """
        if self._git_apply(patch, check=True).returncode == 0:
            return self._write_patch(patch)
        with tempfile.TemporaryDirectory(prefix="footplate-") as scratch_dir:
            merged = self._merge_patch(patch, Path(scratch_dir), deleted)
            return merged.stat().st_size > 0 and self._write_patch(merged)

    def import_bundle(self, bundle: Path, branch: str, *, force: bool) -> str:
        """Creates a branch from a bundle and returns the commit at its head."""
        refspec = f"{'+' if force else ''}{_BUNDLE_REF}:refs/heads/{branch}"
        fetched = run_git(self.root, "fetch", "--no-tags", "--no-write-fetch-head", str(bundle), refspec)
        if fetched.returncode != 0:
            raise _branch_error(branch, decode_output(fetched.stderr))
        found = run_git(self.root, "rev-parse", "--verify", f"refs/heads/{branch}")
        return found.stdout.decode().strip()

    def _git_apply(self, patch: Path, *, check: bool) -> "subprocess.CompletedProcess[bytes]":
        options = ["--check"] if check else []
        return run_git(self.root, "apply", "--whitespace=nowarn", *options, str(patch))

    def _write_patch(self, patch: Path) -> bool:
        """Applies the patch to the files. Git checks the whole patch before it writes.

        Some failures appear only during the write: a directory in the way of a new file, or a full disk. By then git
        may have removed files that it has not written again, so the backup is restored.
        """
        checked = self._git_apply(patch, check=True)
        if checked.returncode != 0:
            raise self._conflict_error(_parse_reasons(decode_output(checked.stderr)))
        names = self._touched_names(patch) | self._touched_names(patch, "-R")
        with tempfile.TemporaryDirectory(prefix="footplate-") as backup_dir:
            backup = FileBackup.create(self.root, names, Path(backup_dir))
            try:
                applied = self._git_apply(patch, check=False)
            except BaseException:
                backup.restore()
                raise
            if applied.returncode != 0:
                backup.restore()
                raise self._conflict_error(_parse_reasons(decode_output(applied.stderr)))
        return True

    def _touched_names(self, patch: Path, *direction: str) -> set[bytes]:
        """Returns the file names after the patch. With `-R`, renamed files have their old names."""
        output = require_success(
            run_git(self.root, "apply", *direction, "--numstat", "-z", str(patch)), "read the patch"
        )
        return {line.split(b"\t", 2)[2] for line in output.split(b"\0") if line}

    def _merge_patch(self, patch: Path, scratch_dir: Path, deleted: Sequence[str]) -> Path:
        """Merges the patch with the files in the checkout and returns the patch that remains to be applied."""
        git_env = self._create_git_env(scratch_dir)
        require_success(run_git(self.root, "add", "-u", "--", ":/", extra_env=git_env), "read your changes")
        before = (
            require_success(run_git(self.root, "write-tree", extra_env=git_env), "read your checkout").decode().strip()
        )
        tracked = run_git(self.root, "ls-files", "-z", extra_env=git_env).stdout.split(b"\0")
        exclusions = [f"--exclude={_escape_glob(name)}" for name in {*deleted}.difference(map(_display_name, tracked))]
        tried = run_git(
            self.root, "apply", "--3way", "--cached", "--whitespace=nowarn", *exclusions, str(patch), extra_env=git_env
        )
        if tried.returncode != 0:
            unmerged = run_git(self.root, "ls-files", "-u", "-z", extra_env=git_env).stdout.split(b"\0")
            names = dict.fromkeys(line.split(b"\t", 1)[1] for line in unmerged if b"\t" in line)
            reasons = {_display_name(name): "you and the session changed the same lines" for name in names}
            raise self._conflict_error(reasons or _parse_reasons(decode_output(tried.stderr)))
        after = require_success(run_git(self.root, "write-tree", extra_env=git_env), "merge").decode().strip()
        before = self._add_untracked(before, after, git_env)
        merged = scratch_dir / "merged"
        options = ("-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-renames")
        prefixes = ("--src-prefix=a/", "--dst-prefix=b/")
        merged.write_bytes(
            require_success(
                run_git(self.root, "diff-tree", *options, *prefixes, before, after, extra_env=git_env), "compare"
            )
        )
        return merged

    def _add_untracked(self, before: str, after: str, git_env: dict[str, str]) -> str:
        """Adds untracked files that are new in `after` to the tree `before`, such as those of an earlier `apply`."""
        new = self._changed_names(git_env, "--diff-filter=A", before, after)
        existing = [name for name in new if _is_file(self.root / os.fsdecode(name))]
        if not existing:
            return before
        require_success(run_git(self.root, "read-tree", before, extra_env=git_env), "read your checkout")
        command = ("--literal-pathspecs", "add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
        if run_git(self.root, *command, extra_env=git_env, stdin=b"\0".join(existing)).returncode != 0:
            return before  # a path is blocked; applying the patch reports how
        found = (
            require_success(run_git(self.root, "write-tree", extra_env=git_env), "read your checkout").decode().strip()
        )
        differ = set(existing).intersection(self._changed_names(git_env, found, after))
        if differ:
            raise self._conflict_error(
                {_display_name(name): _UNCOMMITTED_EXISTS for name in existing if name in differ}
            )
        return found

    def _changed_names(self, git_env: dict[str, str], *argv: str) -> list[bytes]:
        found = require_success(
            run_git(self.root, "diff-tree", "-r", "-z", "--name-only", *argv, extra_env=git_env), "compare"
        )
        return [name for name in found.split(b"\0") if name]

    def _create_git_env(self, scratch_dir: Path) -> dict[str, str]:
        """Returns git variables for a separate index and object directory, so nothing stays in the repository."""
        objects, index = self._git_path("objects"), self._git_path("index")
        (scratch_dir / "objects").mkdir()
        if index.exists():
            shutil.copyfile(index, scratch_dir / "index")
        alternates = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
        return {
            "GIT_INDEX_FILE": str(scratch_dir / "index"),
            "GIT_OBJECT_DIRECTORY": str(scratch_dir / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join([str(objects), *([alternates] if alternates else [])]),
        }

    def _conflict_error(self, reasons: Mapping[str, str]) -> PatchConflict:
        lines = [f"  {path}: {why}" for path, why in list(reasons.items())[:_MAX_REPORTED]]
        rest = [f"  and {len(reasons) - len(lines)} more"] if len(reasons) > len(lines) else []
        return PatchConflict(
            "\n".join(["The session's changes conflict with your checkout:", *lines, *rest]),
            help_text=f"Nothing was changed. {self._conflict_advice(reasons)}",
        )

    def _conflict_advice(self, reasons: Mapping[str, str]) -> str:
        """Returns what resolves the conflict. It depends on whether the user has committed the conflicting changes."""
        if any(why in _IN_THE_WAY for why in reasons.values()):
            return "Move or delete what is in the way of the session's new files, and run `footplate apply` again."
        changed = run_git(self.root, "--literal-pathspecs", "diff", "--name-only", "HEAD", "--", *reasons)
        if changed.stdout:
            return (
                "Run `git stash`, then `footplate apply`, then `git stash pop`: git marks the lines that conflict "
                "with your uncommitted changes."
            )
        return (
            "Run `footplate export --branch NAME`, then `git merge NAME`: git marks the lines that conflict with your "
            "commits."
        )

    def _git_path(self, name: str) -> Path:
        found = require_success(run_git(self.root, "rev-parse", "--git-path", name), "find your repository")
        return self.root / os.fsdecode(found.rstrip(b"\n"))


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _escape_glob(name: str) -> str:
    return re.sub(r"([*?\[\]\\])", r"\\\1", name)


def _display_name(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _parse_reasons(stderr: str) -> dict[str, str]:
    """Maps each file that git reports to the reason. Git names some files twice."""
    found: dict[str, str] = {}
    for line in stderr.splitlines():
        match = _APPLY_ERROR.match(line)
        if match is None:
            continue
        path, reason = match[1], match[2] or "it differs from the version that the session started with"
        if (unwritten := _WRITE_ERROR.match(path)) is not None:
            path, reason = unwritten[1], _WRITE_ERROR_REASONS.get(reason, f"it cannot be written: {reason}")
        if _MISSING_BLOB in line:
            path, reason = "this repository", "does not have the files that the session started with"
        elif reason == "patch does not apply":
            reason = "it differs from the version that the session started with"
        elif "already exists" in reason:
            reason = _UNCOMMITTED_EXISTS
        elif reason.startswith(("No such file", "does not exist")):
            reason = "the session changed it, and it does not exist here"
        found[path] = reason
    return found or {"git": stderr or "no error message"}


def _branch_error(branch: str, stderr: str) -> ClientError:
    if "prerequisite" in stderr:
        return ClientError(
            "This repository does not have the commit that the session started from.",
            help_text="Nothing was changed. Run `git fetch` first, or use a clone of the session's project.",
        )
    if "non-fast-forward" in stderr:
        return ClientError(
            f"The branch {branch!r} has commits that the session's branch does not have.",
            help_text="Nothing was changed. Choose another name, or overwrite the branch with --force.",
        )
    if "refusing to fetch into" in stderr:
        return ClientError(
            f"The branch {branch!r} is checked out.", help_text="Nothing was changed. Choose another name."
        )
    if "invalid refspec" in stderr:
        return ClientError(
            f"{branch!r} is not a valid branch name.",
            help_text="Nothing was changed. Examples of valid names: main, release/2.",
        )
    return ClientError(f"git could not create the branch {branch!r}: {stderr}", help_text="Nothing was changed.")
