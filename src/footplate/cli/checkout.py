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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from footplate.client import ClientError

_MOST_TOLD: Final = 20
_BUNDLED: Final = "refs/heads/session"
_MISSING_BLOB: Final = "lacks the necessary blob"
_FAILED: Final = re.compile(r"error: (?:patch failed: )?(.+?)(?::\d+)?(?:: (.*))?$")


class DoesNotFit(ClientError):
    code = "does_not_fit"


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
        """Git looks at all of it before it writes any."""
        applied = self._apply(patch, check=False)
        if applied.returncode != 0:
            raise _unfit(_reasons(_text(applied.stderr)))
        return True

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
        merged = place / "merged"
        options = ("-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-renames")
        prefixes = ("--src-prefix=a/", "--dst-prefix=b/")
        merged.write_bytes(
            _must(_git(self.root, "diff-tree", *options, *prefixes, before, after, more=beside), "compare")
        )
        return merged

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


def _git(directory: Path, *argv: str, more: dict[str, str] | None = None) -> "subprocess.CompletedProcess[bytes]":
    environment = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(more or {})}
    try:
        return subprocess.run(["git", *argv], cwd=directory, env=environment, capture_output=True, check=False)
    except FileNotFoundError:
        raise ClientError("There is no git on this machine.", help_text="Install git, and try again.") from None
    except NotADirectoryError:
        raise ClientError(f"{directory} is no directory.") from None


def _must(done: "subprocess.CompletedProcess[bytes]", what: str) -> bytes:
    if done.returncode != 0:
        raise ClientError(f"git could not {what}: {_text(done.stderr)}", help_text="Nothing was changed.")
    return done.stdout


def _text(said: bytes) -> str:
    return said.decode("utf-8", "replace").strip()


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
        if _MISSING_BLOB in line:
            path, why = "this repository", "does not have the files that the session began with"
        elif why == "patch does not apply":
            why = "it is not what the session began with"
        elif "already exists" in why:
            why = "the session added it, and there is one here that is not committed"
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
    return ClientError(f"git could not make the branch {branch!r}: {said}", help_text="Nothing was changed.")
