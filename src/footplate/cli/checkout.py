"""Applies a session's changes to the user's own checkout with the user's own git, completely or not at all.

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

from footplate.client import ClientError

_MOST_TOLD: Final = 20
_BUNDLED: Final = "refs/heads/session"
_MISSING_BLOB: Final = "lacks the necessary blob"
_IN_THE_WAY: Final = "the session added it, and an uncommitted file with this name exists here"
_FAILED: Final = re.compile(r"error: (?:patch failed: )?(.+?)(?::\d+)?(?:: (.*))?$")
_UNWRITTEN: Final = re.compile(r"unable to write file '(.+)' mode \d+$")
_CANNOT: Final = {
    "Directory not empty": "the session added it, and a directory with this name exists here",
    "Is a directory": "the session added it, and a directory with this name exists here",
    "Not a directory": "the session added it, and its parent directory is a file here",
}


class DoesNotFit(ClientError):
    code = "does_not_fit"


@dataclass(frozen=True, slots=True)
class Kept:
    """A backup of files, which is restored if a change to them fails midway."""

    files: Mapping[Path, Path | None]
    """The backup copy of each file. None if the file did not exist."""
    missing: Sequence[Path]
    """Parent directories that did not exist, innermost first."""

    @classmethod
    def of(cls, root: Path, names: Iterable[bytes], place: Path) -> "Kept":
        files: dict[Path, Path | None] = {}
        missing: set[Path] = set()
        for number, path in enumerate(root / os.fsdecode(name) for name in sorted(names)):
            files[path] = kept = place / str(number) if _is_file(path) else None
            if kept is not None:
                shutil.copy2(path, kept, follow_symlinks=False)
            missing.update(each for each in path.parents if each.is_relative_to(root) and not each.is_dir())
        return cls(files, sorted(missing, key=lambda each: len(each.parts), reverse=True))

    def put_back(self) -> None:
        for path, kept in self.files.items():
            if kept is None and _is_file(path):
                path.unlink()
        for directory in self.missing:
            with suppress(OSError):
                directory.rmdir()
        for path, kept in self.files.items():
            if kept is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.unlink(missing_ok=True)
                shutil.copy2(kept, path, follow_symlinks=False)


@dataclass(frozen=True, slots=True)
class Checkout:
    root: Path

    @classmethod
    def at(cls, directory: Path) -> "Checkout":
        found = _git(directory, "rev-parse", "--show-toplevel")
        if found.returncode != 0 or not found.stdout.strip():
            raise ClientError(
                f"{directory.absolute()} is not inside a checkout of a git repository.",
                help_text="Change to the checkout that should receive the changes, or pass it with --directory.",
            )
        return cls(Path(os.fsdecode(found.stdout.rstrip(b"\n"))))

    def apply(self, patch: Path, deleted: Sequence[str] = ()) -> bool:
        """Applies the patch and returns False if nothing had to be changed.

        Raises `DoesNotFit` without any change if the patch conflicts with the checkout. `deleted` lists the files that
        the patch deletes, which may be missing already.
        """
        if self._apply(patch, check=True).returncode == 0:
            return self._written(patch)
        with tempfile.TemporaryDirectory(prefix="footplate-") as place:
            merged = self._merged(patch, Path(place), deleted)
            return merged.stat().st_size > 0 and self._written(merged)

    def take(self, bundle: Path, branch: str, *, force: bool) -> str:
        """Creates a branch from a bundle and returns the commit at its head."""
        wanted = f"{'+' if force else ''}{_BUNDLED}:refs/heads/{branch}"
        fetched = _git(self.root, "fetch", "--no-tags", "--no-write-fetch-head", str(bundle), wanted)
        if fetched.returncode != 0:
            raise _not_taken(branch, _text(fetched.stderr))
        found = _git(self.root, "rev-parse", "--verify", f"refs/heads/{branch}")
        return found.stdout.decode().strip()

    def _apply(self, patch: Path, *, check: bool) -> "subprocess.CompletedProcess[bytes]":
        words = ["--check"] if check else []
        return _git(self.root, "apply", "--whitespace=nowarn", *words, str(patch))

    def _written(self, patch: Path) -> bool:
        """Applies the patch to the files. Git checks the whole patch before it writes.

        Some failures appear only during the write: a directory in the way of a new file, or a full disk. By then git
        may have removed files that it has not written again, so the backup is restored.
        """
        checked = self._apply(patch, check=True)
        if checked.returncode != 0:
            raise _unfit(_reasons(_text(checked.stderr)))
        names = self._touched(patch) | self._touched(patch, "-R")
        with tempfile.TemporaryDirectory(prefix="footplate-") as place:
            kept = Kept.of(self.root, names, Path(place))
            try:
                applied = self._apply(patch, check=False)
            except BaseException:
                kept.put_back()
                raise
            if applied.returncode != 0:
                kept.put_back()
                raise _unfit(_reasons(_text(applied.stderr)))
        return True

    def _touched(self, patch: Path, *direction: str) -> set[bytes]:
        """Returns the file names after the patch. With `-R`, renamed files have their old names."""
        said = _must(_git(self.root, "apply", *direction, "--numstat", "-z", str(patch)), "read the patch")
        return {line.split(b"\t", 2)[2] for line in said.split(b"\0") if line}

    def _merged(self, patch: Path, place: Path, deleted: Sequence[str]) -> Path:
        """Merges the patch with the files in the checkout and returns the patch that remains to be applied."""
        beside = self._beside(place)
        _must(_git(self.root, "add", "-u", "--", ":/", more=beside), "read your changes")
        before = _must(_git(self.root, "write-tree", more=beside), "read your checkout").decode().strip()
        there = _git(self.root, "ls-files", "-z", more=beside).stdout.split(b"\0")
        gone = [f"--exclude={_literal(name)}" for name in {*deleted}.difference(map(_shown, there))]
        tried = _git(self.root, "apply", "--3way", "--cached", "--whitespace=nowarn", *gone, str(patch), more=beside)
        if tried.returncode != 0:
            unmerged = _git(self.root, "ls-files", "-u", "-z", more=beside).stdout.split(b"\0")
            names = dict.fromkeys(line.split(b"\t", 1)[1] for line in unmerged if b"\t" in line)
            reasons = {_shown(name): "changed by you and by the session in the same lines" for name in names}
            raise _unfit(reasons or _reasons(_text(tried.stderr)))
        after = _must(_git(self.root, "write-tree", more=beside), "merge").decode().strip()
        before = self._with_those_here(before, after, beside)
        merged = place / "merged"
        options = ("-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-renames")
        prefixes = ("--src-prefix=a/", "--dst-prefix=b/")
        merged.write_bytes(
            _must(_git(self.root, "diff-tree", *options, *prefixes, before, after, more=beside), "compare")
        )
        return merged

    def _with_those_here(self, before: str, after: str, beside: dict[str, str]) -> str:
        """Adds untracked files that are new in `after` to the tree `before`, such as those of an earlier `apply`."""
        new = self._names(beside, "--diff-filter=A", before, after)
        here = [name for name in new if _is_file(self.root / os.fsdecode(name))]
        if not here:
            return before
        _must(_git(self.root, "read-tree", before, more=beside), "read your checkout")
        words = ("--literal-pathspecs", "add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
        if _git(self.root, *words, more=beside, stdin=b"\0".join(here)).returncode != 0:
            return before  # a path is blocked; applying the patch reports how
        found = _must(_git(self.root, "write-tree", more=beside), "read your checkout").decode().strip()
        differ = set(here).intersection(self._names(beside, found, after))
        if differ:
            raise _unfit({_shown(name): _IN_THE_WAY for name in here if name in differ})
        return found

    def _names(self, beside: dict[str, str], *argv: str) -> list[bytes]:
        found = _must(_git(self.root, "diff-tree", "-r", "-z", "--name-only", *argv, more=beside), "compare")
        return [name for name in found.split(b"\0") if name]

    def _beside(self, place: Path) -> dict[str, str]:
        """Returns git variables for a separate index and object directory, so nothing stays in the repository."""
        objects, index = self._path("objects"), self._path("index")
        (place / "objects").mkdir()
        if index.exists():
            shutil.copyfile(index, place / "index")
        others = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")
        return {
            "GIT_INDEX_FILE": str(place / "index"),
            "GIT_OBJECT_DIRECTORY": str(place / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join([str(objects), *([others] if others else [])]),
        }

    def _path(self, name: str) -> Path:
        found = _must(_git(self.root, "rev-parse", "--git-path", name), "find your repository")
        return self.root / os.fsdecode(found.rstrip(b"\n"))


def _git(
    directory: Path, *argv: str, more: dict[str, str] | None = None, stdin: bytes | None = None
) -> "subprocess.CompletedProcess[bytes]":
    environment = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(more or {})}
    try:
        return subprocess.run(
            ["git", *argv], cwd=directory, env=environment, input=stdin, capture_output=True, check=False
        )
    except FileNotFoundError:
        if not directory.exists():
            raise ClientError(
                f"The directory {directory} does not exist.", help_text="Pass an existing checkout with --directory."
            ) from None
        raise ClientError("git is not installed on this machine.", help_text="Install git and try again.") from None
    except NotADirectoryError:
        raise ClientError(f"{directory} is not a directory.", help_text="Pass a checkout with --directory.") from None


def _must(done: "subprocess.CompletedProcess[bytes]", what: str) -> bytes:
    if done.returncode != 0:
        raise ClientError(f"git could not {what}: {_text(done.stderr)}", help_text="Nothing was changed.")
    return done.stdout


def _text(said: bytes) -> str:
    return said.decode("utf-8", "replace").strip()


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def _literal(name: str) -> str:
    return re.sub(r"([*?\[\]\\])", r"\\\1", name)


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _reasons(said: str) -> dict[str, str]:
    """Maps each file that git reports to the reason. Git names some files twice."""
    found: dict[str, str] = {}
    for line in said.splitlines():
        match = _FAILED.match(line)
        if match is None:
            continue
        path, why = match[1], match[2] or "it differs from the version that the session started with"
        if (unwritten := _UNWRITTEN.match(path)) is not None:
            path, why = unwritten[1], _CANNOT.get(why, f"it cannot be written: {why}")
        if _MISSING_BLOB in line:
            path, why = "this repository", "does not have the files that the session started with"
        elif why == "patch does not apply":
            why = "it differs from the version that the session started with"
        elif "already exists" in why:
            why = _IN_THE_WAY
        elif why.startswith(("No such file", "does not exist")):
            why = "the session changed it, and it does not exist here"
        found[path] = why
    return found or {"git": said or "no error message"}


def _unfit(reasons: dict[str, str]) -> DoesNotFit:
    told = [f"  {path}: {why}" for path, why in list(reasons.items())[:_MOST_TOLD]]
    rest = [f"  and {len(reasons) - len(told)} more"] if len(reasons) > len(told) else []
    return DoesNotFit(
        "\n".join(["The session's changes conflict with your checkout:", *told, *rest]),
        help_text="Nothing was changed. Commit or stash your changes and try again, or run "
        "`footplate export --branch NAME` and merge that branch.",
    )


def _not_taken(branch: str, said: str) -> ClientError:
    if "prerequisite" in said:
        return ClientError(
            "This repository does not have the commit that the session started from.",
            help_text="Nothing was changed. Run the command in a clone of the session's project, or fetch there first.",
        )
    if "non-fast-forward" in said:
        return ClientError(
            f"The branch {branch!r} has commits that the session's branch does not have.",
            help_text="Nothing was changed. Choose another name, or overwrite the branch with --force.",
        )
    if "refusing to fetch into" in said:
        return ClientError(
            f"The branch {branch!r} is checked out.", help_text="Nothing was changed. Choose another name."
        )
    if "invalid refspec" in said:
        return ClientError(
            f"{branch!r} is not a valid branch name.", help_text="Nothing was changed. Valid names: main, release/2."
        )
    return ClientError(f"git could not create the branch {branch!r}: {said}", help_text="Nothing was changed.")
