"""The user's own checkout, by the user's own git. All of a change reaches its files, or none of it.

A patch that does not fit as it is becomes a merge of three: what the session began with, what it made of that, and what
is here. That is worked out beside the checkout, in an index and with objects of its own, and only what goes together is
then written.
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
_IN_THE_WAY: Final = "the session added it, and there is one here that is not committed"
_FAILED: Final = re.compile(r"error: (?:patch failed: )?(.+?)(?::\d+)?(?:: (.*))?$")
_UNWRITTEN: Final = re.compile(r"unable to write file '(.+)' mode \d+$")
_CANNOT: Final = {
    "Directory not empty": "the session added it, and there is a directory of that name here",
    "Is a directory": "the session added it, and there is a directory of that name here",
    "Not a directory": "the session added it, and what should be its directory is a file here",
}


class DoesNotFit(ClientError):
    code = "does_not_fit"


@dataclass(frozen=True, slots=True)
class Kept:
    """Files as they were, to be put back if a change of them fails half-way."""

    files: Mapping[Path, Path | None]
    """Where each is kept; none where there was nothing."""
    missing: Sequence[Path]
    """Directories on the way that were not there, the innermost first."""

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
                f"{directory.absolute()} is in no checkout of a git repository.",
                help_text="Go to the checkout that the session's work is for, or name it with --directory.",
            )
        return cls(Path(os.fsdecode(found.stdout.rstrip(b"\n"))))

    def apply(self, patch: Path, deleted: Sequence[str] = ()) -> bool:
        """False: there was nothing to do. Raises `DoesNotFit`, and then nothing is changed. `deleted`: what the patch
        deletes, and may be gone already.
        """
        if self._apply(patch, check=True).returncode == 0:
            return self._written(patch)
        with tempfile.TemporaryDirectory(prefix="footplate-") as place:
            merged = self._merged(patch, Path(place), deleted)
            return merged.stat().st_size > 0 and self._written(merged)

    def take(self, bundle: Path, branch: str, *, force: bool) -> str:
        """Makes a branch of what a bundle has, and says which commit it is at."""
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
        """Git looks at all of it before it writes any. What only shows while it writes, a directory in a new file's
        place or a full disk, is undone: git has removed files by then that it did not come to write again.
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
        """Names as they are after it; of those that are renamed, `-R` has what they were."""
        said = _must(_git(self.root, "apply", *direction, "--numstat", "-z", str(patch)), "read the patch")
        return {line.split(b"\t", 2)[2] for line in said.split(b"\0") if line}

    def _merged(self, patch: Path, place: Path, deleted: Sequence[str]) -> Path:
        """What is to be changed here, once it is merged with what is here."""
        beside = self._beside(place)
        _must(_git(self.root, "add", "-u", "--", ":/", more=beside), "look at your changes")
        before = _must(_git(self.root, "write-tree", more=beside), "look at your checkout").decode().strip()
        there = _git(self.root, "ls-files", "-z", more=beside).stdout.split(b"\0")
        gone = [f"--exclude={_literal(name)}" for name in {*deleted}.difference(map(_shown, there))]
        tried = _git(self.root, "apply", "--3way", "--cached", "--whitespace=nowarn", *gone, str(patch), more=beside)
        if tried.returncode != 0:
            unmerged = _git(self.root, "ls-files", "-u", "-z", more=beside).stdout.split(b"\0")
            names = dict.fromkeys(line.split(b"\t", 1)[1] for line in unmerged if b"\t" in line)
            reasons = {_shown(name): "changed here and by the session, in the same place" for name in names}
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
        """What is here, and what is here of the files that are new in `after` though git does not know them yet: an
        earlier `apply` brought them, say.
        """
        new = self._names(beside, "--diff-filter=A", before, after)
        here = [name for name in new if _is_file(self.root / os.fsdecode(name))]
        if not here:
            return before
        _must(_git(self.root, "read-tree", before, more=beside), "look at your checkout")
        words = ("--literal-pathspecs", "add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
        if _git(self.root, *words, more=beside, stdin=b"\0".join(here)).returncode != 0:
            return before  # it is in the way; the patch will say how
        found = _must(_git(self.root, "write-tree", more=beside), "look at your checkout").decode().strip()
        differ = set(here).intersection(self._names(beside, found, after))
        if differ:
            raise _unfit({_shown(name): _IN_THE_WAY for name in here if name in differ})
        return found

    def _names(self, beside: dict[str, str], *argv: str) -> list[bytes]:
        found = _must(_git(self.root, "diff-tree", "-r", "-z", "--name-only", *argv, more=beside), "compare")
        return [name for name in found.split(b"\0") if name]

    def _beside(self, place: Path) -> dict[str, str]:
        """Nothing of what is tried is left in the repository."""
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
                f"There is no directory {directory}.", help_text="Name a checkout that is there with --directory."
            ) from None
        raise ClientError("There is no git on this machine.", help_text="Install git, and try again.") from None
    except NotADirectoryError:
        raise ClientError(f"{directory} is no directory.", help_text="Name a checkout with --directory.") from None


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
    """Git names each file, some of them twice."""
    found: dict[str, str] = {}
    for line in said.splitlines():
        match = _FAILED.match(line)
        if match is None:
            continue
        path, why = match[1], match[2] or "it is not what the session began with"
        if (unwritten := _UNWRITTEN.match(path)) is not None:
            path, why = unwritten[1], _CANNOT.get(why, f"it cannot be written: {why}")
        if _MISSING_BLOB in line:
            path, why = "this repository", "does not have the files that the session began with"
        elif why == "patch does not apply":
            why = "it is not what the session began with"
        elif "already exists" in why:
            why = _IN_THE_WAY
        elif why.startswith(("No such file", "does not exist")):
            why = "the session changed it, and it is not here"
        found[path] = why
    return found or {"git": said or "said nothing"}


def _unfit(reasons: dict[str, str]) -> DoesNotFit:
    told = [f"  {path}: {why}" for path, why in list(reasons.items())[:_MOST_TOLD]]
    rest = [f"  and {len(reasons) - len(told)} more"] if len(reasons) > len(told) else []
    return DoesNotFit(
        "\n".join(["The session's changes do not go together with what is in your checkout:", *told, *rest]),
        help_text="Nothing was changed. Commit or stash what is yours and try again, or take the work as a branch with "
        "`footplate export --branch NAME`, merge it and decide there.",
    )


def _not_taken(branch: str, said: str) -> ClientError:
    if "prerequisite" in said:
        return ClientError(
            "This repository does not have the commit that the session began with.",
            help_text="Nothing was changed. Go to a clone of the session's project, or fetch there first.",
        )
    if "non-fast-forward" in said:
        return ClientError(
            f"The branch {branch!r} has commits that the session's work does not have.",
            help_text="Nothing was changed. Choose another name, or write over it with --force.",
        )
    if "refusing to fetch into" in said:
        return ClientError(
            f"The branch {branch!r} is checked out.", help_text="Nothing was changed. Choose another name."
        )
    if "invalid refspec" in said:
        return ClientError(
            f"{branch!r} is no name of a branch.", help_text="Nothing was changed. Write it as in: main, release/2."
        )
    return ClientError(f"git could not make the branch {branch!r}: {said}", help_text="Nothing was changed.")
