"""Projects and workspaces (K5): which repositories a session works on. Pure.

A project is a git repository: one at a path under the operator's projects root, or one behind a URL. A workspace is an
ordered list of projects. A session's first project is its working directory; the others lie beside it.
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
"""Of one session or workspace."""
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""Also the name of a directory, wherever the project is one of several."""
OF_ORGANISATION: Final = "{organisation}"
"""In the projects root: each organisation has a directory of its own. Without it, the root is the default one's."""
DEFAULT_ORGANISATION: Final = "default"
PRIVATE_TREES: Final = "trees"
"""In a worker's data directory: what the host keeps of sessions' trees, and no agent sees."""
_LONGEST: Final = 1024
_LONGEST_STEP: Final = 255
_BRANCH: Final = re.compile(
    r"(?!.*(?:\.\.|@\{|//|\.lock(?:/|$)|/\.))[^\x00-\x20\x7f~^:?*\[\\./-][^\x00-\x20\x7f~^:?*\[\\]*"
)
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?|[0-9a-f:.]*:[0-9a-f:.]*")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")


class Trust(StrEnum):
    """How far a project's own files may direct an agent's harness."""

    NOTHING = "nothing"
    INSTRUCTIONS = "instructions"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    id: str
    organisation: str
    name: str
    path: str | None
    """Relative to the projects root; None: it has a URL."""
    url: str | None
    branch: str | None
    """What sessions begin with; None: what the repository itself has checked out."""
    trust: Trust
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None = None
    permissions: JsonObject = field(default_factory=dict)
    """Rules for every session that works on it."""


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
    """What a session's tree began with: decided once, at the session's first turn."""

    commit: str | None
    """None: the repository had no commit."""
    branch: str
    name: str = ""
    """What the project was called: its directory keeps the name."""
    tree: str | None = None
    """The commit's files, by git's id of them. None in logs of an older version."""

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
    """A project as a turn is given it."""

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
    """Which projects a session asks for: by themselves, or by a workspace."""

    project_ids: Sequence[str] = ()
    workspace_id: str | None = None


NO_PROJECTS: Final = Choice()


def trust_of(value: Json) -> Trust:
    """What nobody can read is not trusted."""
    return Trust(value) if isinstance(value, str) and value in set(Trust) else Trust.NOTHING


def root_of(template: str, organisation: str) -> str:
    """Where an organisation's projects lie: none can name another's."""
    if OF_ORGANISATION in template:
        return template.replace(OF_ORGANISATION, directory_of(organisation))
    if organisation == DEFAULT_ORGANISATION:
        return template
    raise InvalidRequest(
        "path: the server's projects root belongs to another organisation",
        field="path",
        help_text=f"Its operator gives each one its own with `{OF_ORGANISATION}` in FOOTPLATE_PROJECTS_ROOT.",
    )


def path_of(given: str, root: str) -> str:
    """Relative to the root and without a step that leads elsewhere. What links do is looked at when it is opened."""
    text = given
    if given.startswith("/"):
        base = root.rstrip("/") + "/"
        if not given.startswith(base):
            raise _no_path(given, f"it does not lie below the server's projects root {root}")
        text = given.removeprefix(base)
    steps = [step for step in text.split("/") if step not in {"", "."}]
    if not steps:
        raise _no_path(given, "it names no directory below the server's projects root")
    if ".." in steps:
        raise _no_path(given, "`..` is not followed")
    if ".git" in {step.lower() for step in steps}:
        raise _no_path(given, "it leads into a git directory")
    if any(ord(char) < ord(" ") or char == "\x7f" for char in given):
        raise _no_path(given, "it has control characters")
    if len(text.encode()) > _LONGEST or any(len(step.encode()) > _LONGEST_STEP for step in steps):
        raise _no_path(given, f"a path has at most {_LONGEST} bytes, and a name in it {_LONGEST_STEP}")
    return "/".join(steps)


def url_of(given: str) -> str:
    """One that the worker may hand to git: plain, and without a secret in it."""
    try:
        parts = urlsplit(given)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _no_url(given, "it cannot be read") from None
    if parts.scheme not in {"https", "http"} or not host:
        raise _no_url("", "it has to begin with https:// or http:// and name a host")
    if not _HOST.fullmatch(host):
        raise _no_url("", f"{host!r} is no name of a host")
    if parts.username is not None or parts.password is not None:
        raise _no_url("", "it has a name or a password in it, which everybody would see who may list projects")
    if parts.query or parts.fragment or any(ord(char) <= ord(" ") or char in "\x7f\\" for char in given):
        raise _no_url(given, "a repository's URL has no query, fragment, space or control character")
    return given.rstrip("/")


def branch_of(given: str, field: str = "branch") -> str:
    """As git's own rules have it, and never an option of a command."""
    if not _BRANCH.fullmatch(given) or given.endswith(("/", ".")) or len(given.encode()) > _LONGEST_STEP:
        raise InvalidRequest(
            f"{field}: {given!r} is no name of a branch", field=field, help_text="Write it as in: main, release/2."
        )
    return given


def name_of(place: str) -> str:
    """A name for a project that was given none, after the last step of its path or URL."""
    last = PurePosixPath(unquote(urlsplit(place).path) if "://" in place else place).name.removesuffix(".git")
    name = _UNFIT.sub("-", last).strip("-._")[:64]
    return name or "project"


class ProjectReads(Protocol):
    async def project(self, principal: Principal, project_id: str) -> Project: ...
    async def projects(self, principal: Principal, page: Page, *, path: str | None = None) -> Sequence[Project]:
        """`path`: only the one that is there."""

    async def workspace(self, principal: Principal, workspace_id: str) -> Workspace: ...
    async def workspaces(self, principal: Principal, page: Page) -> Sequence[Workspace]: ...


class ProjectUnit(Protocol):
    """Part of a transaction of the api's."""

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
        help_text="Give a path below FOOTPLATE_PROJECTS_ROOT, as in: team/website.",
    )


def _no_url(given: str, why: str) -> InvalidRequest:
    return InvalidRequest(
        f"url: {f'{given!r} ' if given else ''}cannot be a project: {why}".replace(": cannot", ": it cannot"),
        field="url",
        help_text="Give it as in: https://git.example.com/team/website.git",
    )
