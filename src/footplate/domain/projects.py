"""Projects and workspaces: the repositories that a session works on.

A project is a git repository, either at a path below the operator's projects root or at a URL. A workspace is an
ordered list of projects. The first project of a session is its working directory; the others are in sibling
directories.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations import directory_of
from footplate.domain.pages import Page
from footplate.domain.principals import Principal

MOST_PROJECTS: Final = 16
"""Maximum number of projects of one session or workspace."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""The name is also used for the directory of a session's additional project."""
OF_ORGANISATION: Final = "{organisation}"
"""Placeholder in the projects root for each organisation's own directory. Without it, the root belongs to the default
organisation."""
DEFAULT_ORGANISATION: Final = "default"
PRIVATE_TREES: Final = "trees"
"""Directory in a worker's data directory for the host's own data about sessions' trees. Agents cannot see it."""
_LONGEST: Final = 1024
_LONGEST_STEP: Final = 255
_BRANCH: Final = re.compile(
    r"(?!.*(?:\.\.|@\{|//|\.lock(?:/|$)|/\.))[^\x00-\x20\x7f~^:?*\[\\./-][^\x00-\x20\x7f~^:?*\[\\]*"
)
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?|[0-9a-f:.]*:[0-9a-f:.]*")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")


class Trust(StrEnum):
    """Which of a project's own files the harness may use: none, instructions, or everything."""

    NOTHING = "nothing"
    INSTRUCTIONS = "instructions"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    id: str
    organisation: str
    name: str
    path: str | None
    """The path relative to the projects root. None: the project has a URL."""
    url: str | None
    branch: str | None
    """The branch that sessions start from. None: the branch that the repository has checked out."""
    trust: Trust
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None
    permissions: JsonObject = field(default_factory=dict)
    """Permission rules for all sessions that work on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    id: str
    organisation: str
    name: str
    project_ids: Sequence[str]
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Base:
    """The commit that a session's tree starts from. It is fixed at the session's first turn."""

    commit: str | None
    """None: the repository had no commit."""
    branch: str
    name: str = ""
    """The project's name at that time. Its directory keeps this name."""
    tree: str | None = None
    """The id of the commit's git tree. None in logs of older versions."""

    @property
    def record(self) -> JsonObject:
        return {"commit": self.commit, "branch": self.branch, "name": self.name, "tree": self.tree}

    @classmethod
    def load(cls, stored: Json) -> "Base | None":
        if not isinstance(stored, dict):
            return None
        commit, tree = (found if isinstance(found := stored.get(key), str) else None for key in ("commit", "tree"))
        branch, name = (str(stored.get(key) or "") for key in ("branch", "name"))
        return cls(commit, branch, name, tree)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionProject:
    """A project in the configuration of a turn."""

    id: str
    name: str
    trust: Trust = Trust.NOTHING
    path: str | None = None
    url: str | None = None
    branch: str | None = None
    base: Base | None = None
    """None: no turn has begun yet."""

    @property
    def base_commit(self) -> str | None:
        """None: no turn has begun yet, or the repository had no commit then."""
        return None if self.base is None else self.base.commit

    @classmethod
    def load(cls, stored: Mapping[str, Json]) -> "SessionProject":
        path, url, branch = (stored.get(key) for key in ("path", "url", "branch"))
        return cls(
            id=str(stored["id"]),
            name=str(stored["name"]),
            trust=trust_of(stored.get("trust")),
            path=path if isinstance(path, str) else None,
            url=url if isinstance(url, str) else None,
            branch=branch if isinstance(branch, str) else None,
            base=Base.load(stored.get("base")),
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """The projects that a new session selects, individually or through a workspace."""

    project_ids: Sequence[str] = ()
    workspace_id: str | None = None


NO_PROJECTS: Final = Choice()


def trust_of(value: Json) -> Trust:
    """Parse a trust level. Invalid values count as no trust."""
    return Trust(value) if isinstance(value, str) and value in set(Trust) else Trust.NOTHING


def root_of(template: str, organisation: str) -> str:
    """Return the directory of an organisation's projects. No organisation can use another's directory."""
    if OF_ORGANISATION in template:
        return template.replace(OF_ORGANISATION, directory_of(organisation))
    if organisation == DEFAULT_ORGANISATION:
        return template
    raise InvalidRequest(
        "path: the server's projects root belongs to another organisation",
        field="path",
        help_text=f"Ask the operator for a root per organisation: `{OF_ORGANISATION}` in FOOTPLATE_PROJECTS_ROOT.",
    )


def path_of(given: str, root: str) -> str:
    """Normalise a path: relative to the root, without `..`. Links are checked when the project is opened."""
    text = given
    if given.startswith("/"):
        base = root.rstrip("/") + "/"
        if not given.startswith(base):
            raise _no_path(given, f"it is not below the server's projects root {root}")
        text = given.removeprefix(base)
    steps = [step for step in text.split("/") if step not in {"", "."}]
    if not steps:
        raise _no_path(given, "it names no directory below the server's projects root")
    if ".." in steps:
        raise _no_path(given, "it contains `..`")
    if ".git" in {step.lower() for step in steps}:
        raise _no_path(given, "it leads into a git directory")
    if any(ord(char) < ord(" ") or char == "\x7f" for char in given):
        raise _no_path(given, "it contains control characters")
    if len(text.encode()) > _LONGEST or any(len(step.encode()) > _LONGEST_STEP for step in steps):
        raise _no_path(given, f"a path can have at most {_LONGEST} bytes, and each name in it {_LONGEST_STEP} bytes")
    return "/".join(steps)


def url_of(given: str) -> str:
    """Check a repository URL that the worker passes to git. It must not contain credentials."""
    try:
        parts = urlsplit(given)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _no_url(given, "it is not a valid URL") from None
    if parts.scheme not in {"https", "http"} or not host:
        raise _no_url("", "it must start with https:// or http:// and contain a host")
    if not _HOST.fullmatch(host):
        raise _no_url("", f"{host!r} is not a valid host name")
    if parts.username is not None or parts.password is not None:
        raise _no_url("", "it contains credentials, which everyone who lists projects would see")
    if parts.query or parts.fragment or any(ord(char) <= ord(" ") or char in "\x7f\\" for char in given):
        raise _no_url(given, "it contains a query, a fragment, a space or a control character")
    return given.rstrip("/")


def branch_of(given: str, field: str = "branch") -> str:
    """Check a branch name by git's rules. It can never be read as a command-line option."""
    if not _BRANCH.fullmatch(given) or given.endswith(("/", ".")) or len(given.encode()) > _LONGEST_STEP:
        raise InvalidRequest(
            f"{field}: {given!r} is not a valid branch name", field=field, help_text="Examples: main, release/2."
        )
    return given


def name_of(place: str) -> str:
    """Derive a project's name from the last part of its path or URL."""
    last = PurePosixPath(unquote(urlsplit(place).path) if "://" in place else place).name.removesuffix(".git")
    name = _UNFIT.sub("-", last).strip("-._")[:64]
    return name or "project"


class ProjectReads(Protocol):
    async def project(self, principal: Principal, project_id: str) -> Project: ...
    async def projects(self, principal: Principal, page: Page, *, path: str | None = None) -> Sequence[Project]:
        """`path`: return only the project at this path."""

    async def workspace(self, principal: Principal, workspace_id: str) -> Workspace: ...
    async def workspaces(self, principal: Principal, page: Page) -> Sequence[Workspace]: ...


class ProjectUnit(Protocol):
    """The part of the API's unit of work that changes projects and workspaces."""

    async def create_project(
        self,
        principal: Principal,
        *,
        name: str,
        path: str | None,
        url: str | None,
        branch: str | None,
        trust: Trust,
        metadata: dict[str, str],
        permissions: JsonObject | None = None,
    ) -> Project: ...
    async def update_project(
        self, principal: Principal, project_id: str, change: Callable[[Project], Project]
    ) -> Project: ...
    async def archive_project(self, principal: Principal, project_id: str) -> Project: ...
    async def create_workspace(
        self, principal: Principal, *, name: str, project_ids: Sequence[str], metadata: dict[str, str]
    ) -> Workspace: ...
    async def update_workspace(
        self, principal: Principal, workspace_id: str, change: Callable[[Workspace], Workspace]
    ) -> Workspace: ...
    async def archive_workspace(self, principal: Principal, workspace_id: str) -> Workspace: ...


def _no_path(given: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"path: {given!r} cannot be a project: {why}",
        field="path",
        help_text="Use a path below FOOTPLATE_PROJECTS_ROOT, for example team/website.",
    )


def _no_url(given: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"url: {f'{given!r} ' if given else ''}cannot be a project: {why}".replace(": cannot", ": it cannot"),
        field="url",
        help_text="Example: https://git.example.com/team/website.git",
    )
