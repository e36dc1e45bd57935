"""Path rules: gitignore's patterns at one of four anchors, as Claude Code has them.

`//x` is absolute, `~/x` in the home, `/x` in the working tree, `x` and `./x` below it. As there, `src/**` of an allow
rule means the one at the top, and of a deny or ask rule a directory of that name at any depth.
"""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from footplate.domain.permissions import Outcome
from footplate.gate.globs import may_meet
from footplate.gate.places import Place, Target, under

_ONE_DIRECTORY: Final = re.compile(r"[^/*?\[]+/\*\*")
PROTECTED: Final = (
    ".git", ".claude", ".vscode", ".idea", ".husky", ".devcontainer", ".ssh", ".mcp.json", ".claude.json", ".gitconfig",
    ".gitmodules", ".gitattributes", ".envrc", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile",
    ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".inputrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", "pip.conf",
    ".netrc", ".curlrc", ".wgetrc", ".vimrc", ".exrc", ".ripgreprc", ".pre-commit-config.yaml", "CLAUDE.md",
    "CLAUDE.local.md", ".cargo", "sitecustomize.py", "usercustomize.py",
)  # fmt: skip
"""What tools and shells obey: writing one is a way to run something later. A rule covers it only if it names it."""


@dataclass(frozen=True)
class PathPattern:
    text: str
    outcome: Outcome

    @cached_property
    def _anchor(self) -> str:
        for prefix in ("//", "~/", "/"):
            if self.text.startswith(prefix):
                return prefix
        return ""

    @cached_property
    def _relative(self) -> str:
        """The pattern below its anchor."""
        text = self.text[len(self._anchor) :]
        dotted = text.startswith("./") and not self._anchor
        text = text[2:] if dotted else text
        if self._anchor or (dotted and self.outcome is Outcome.ALLOW):
            return text if text.startswith("**") else f"/{text}"
        if self.outcome is not Outcome.ALLOW and _ONE_DIRECTORY.fullmatch(text):
            return f"**/{text}"
        return text

    @cached_property
    def _regex(self) -> "re.Pattern[str] | None":
        regex = GitIgnoreSpecPattern(self._relative).regex
        return re.compile(str(regex.pattern), re.DOTALL) if regex is not None else None

    @property
    def usable(self) -> bool:
        try:
            return self._regex is not None
        except (GitIgnorePatternError, re.error):
            return False

    def covers(self, path: str, place: Place) -> bool:
        """An absolute, normal path."""
        base = self._base(place)
        regex = self._regex
        if regex is None or not under(path, base):
            return False
        below = path[1:] if base == "/" else path[len(base) + 1 :]
        if regex.search(below):
            return True
        return self.outcome is not Outcome.ALLOW and regex.search(f"{below}/") is not None

    def forbids(self, target: Target, place: Place) -> bool:
        """For deny and ask: by either of its names."""
        if self.covers(target.path, place):
            return True
        return target.real not in {None, target.path} and self.covers(str(target.real), place)

    def permits(self, target: Target, place: Place) -> bool:
        """For allow: by both of its names."""
        if target.real is None or not self.covers(target.path, place):
            return False
        return target.real == target.path or self.covers(target.real, place)

    def may_cover(self, glob: str, place: Place) -> bool:
        """Whether a file that an absolute glob stands for may be covered."""
        base = self._base(place).rstrip("/")
        pattern = self._relative
        anchored = "/" in pattern.rstrip("/")
        whole = f"{base}/{pattern.lstrip('/')}" if anchored else f"{base}/**/{pattern}"
        return may_meet(glob, whole) or may_meet(glob, f"{whole}/**")

    def names(self, component: str) -> bool:
        return component in self.text.split("/")

    def _base(self, place: Place) -> str:
        if self._anchor == "//":
            return "/"
        return place.home if self._anchor == "~/" else place.root


def protected(path: str) -> str | None:
    """The component of a path that makes it one of those."""
    return next((part for part in path.split("/") if part in PROTECTED), None)
