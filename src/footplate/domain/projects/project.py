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
from footplate.domain.organisations.organisation_names import directory_name
from footplate.domain.organisations.principals import Principal
from footplate.domain.pagination import Page

MAX_PROJECTS: Final = 16
"""Maximum number of projects of one session or workspace."""
NAME_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""The name is also used for the directory of a session's additional project."""
ORGANISATION_PLACEHOLDER: Final = "{organisation}"
"""Placeholder in the projects root for each organisation's own directory. Without it, the root belongs to the default
organisation."""
DEFAULT_ORGANISATION: Final = "default"
PRIVATE_TREES: Final = "trees"
"""Directory in a worker's data directory for the host's own data about sessions' trees. Agents cannot see it."""
SUBDIRECTORY_KEY: Final = "subdirectory"
"""The key in the context of a session for the directory of its first project in which programs start."""
BASE_COMMITS_KEY: Final = "base_commits"
"""The key in the context of a session for the commits that it starts from, by project id."""
_MAX_PATH_BYTES: Final = 1024
_MAX_NAME_BYTES: Final = 255
_BRANCH_PATTERN: Final = re.compile(
    r"(?!.*(?:\.\.|@\{|//|\.lock(?:/|$)|/\.))[^\x00-\x20\x7f~^:?*\[\\./-][^\x00-\x20\x7f~^:?*\[\\]*"
)
_COMMIT_PATTERN: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_HOST_PATTERN: Final = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?|[0-9a-f:.]*:[0-9a-f:.]*")
_UNSAFE_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9._-]+")


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
    setup: str | None = None
    """The command that prepares each session's tree."""
    cached_directories: Sequence[str] | None = None
    """The ignored directories that are cached. None: those of `setup.DEFAULT_CACHED_DIRECTORIES`."""


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
class BaseCommit:
    """The commit that a session's tree starts from. It is fixed at the session's first turn."""

    commit: str | None
    """None: the repository had no commit."""
    branch: str
    name: str = ""
    """The project's name at that time. Its directory keeps this name."""
    tree: str | None = None
    """The id of the commit's git tree. None in logs of older versions."""
    is_selected: bool = False
    """Whether the caller selected the commit, which need not be on a branch and may be unreviewed."""

    @property
    def record(self) -> JsonObject:
        selected: JsonObject = {"selected": True} if self.is_selected else {}
        return {"commit": self.commit, "branch": self.branch, "name": self.name, "tree": self.tree, **selected}

    @classmethod
    def load(cls, stored: Json) -> "BaseCommit | None":
        if not isinstance(stored, dict):
            return None
        commit, tree = (found if isinstance(found := stored.get(key), str) else None for key in ("commit", "tree"))
        branch, name = (str(stored.get(key) or "") for key in ("branch", "name"))
        return cls(commit, branch, name, tree, is_selected=stored.get("selected") is True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionProject:
    """A project in the configuration of a turn."""

    id: str
    name: str
    trust: Trust = Trust.NOTHING
    path: str | None = None
    url: str | None = None
    branch: str | None = None
    base: BaseCommit | None = None
    """None: no turn has begun yet."""
    setup: str | None = None
    cached_directories: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Trust no file of a commit that the caller selected: it would decide which programs run."""
        if self.base is not None and self.base.is_selected:
            object.__setattr__(self, "trust", Trust.NOTHING)

    @property
    def base_commit(self) -> str | None:
        """None: no turn has begun yet, or the repository had no commit then."""
        return None if self.base is None else self.base.commit

    @classmethod
    def load(cls, stored: Mapping[str, Json]) -> "SessionProject":
        path, url, branch, setup = (stored.get(key) for key in ("path", "url", "branch", "setup"))
        cached = stored.get("cached_directories")
        return cls(
            id=str(stored["id"]),
            name=str(stored["name"]),
            trust=parse_trust(stored.get("trust")),
            path=path if isinstance(path, str) else None,
            url=url if isinstance(url, str) else None,
            branch=branch if isinstance(branch, str) else None,
            base=BaseCommit.load(stored.get("base")),
            setup=setup if isinstance(setup, str) else None,
            cached_directories=tuple(map(str, cached)) if isinstance(cached, list) else None,
        )


@dataclass(frozen=True, slots=True)
class ProjectSelection:
    """The projects that a new session selects, individually or through a workspace."""

    project_ids: Sequence[str] = ()
    workspace_id: str | None = None


NO_PROJECTS: Final = ProjectSelection()


def parse_trust(value: Json) -> Trust:
    """Parse a trust level. Invalid values count as no trust."""
    return Trust(value) if isinstance(value, str) and value in set(Trust) else Trust.NOTHING


def resolve_projects_root(template: str, organisation: str) -> str:
    """Return the directory of an organisation's projects. No organisation can use another's directory."""
    if ORGANISATION_PLACEHOLDER in template:
        return template.replace(ORGANISATION_PLACEHOLDER, directory_name(organisation))
    if organisation == DEFAULT_ORGANISATION:
        return template
    raise InvalidRequest(
        "path: the server's projects root belongs to another organisation",
        field="path",
        help_text=f"Ask the operator for a root per organisation: `{ORGANISATION_PLACEHOLDER}` in "
        f"FOOTPLATE_PROJECTS_ROOT.",
    )


def normalize_path(given: str, root: str) -> str:
    """Normalise a path: relative to the root, without `..`. Links are checked when the project is opened."""
    text = given
    if given.startswith("/"):
        base = root.rstrip("/") + "/"
        if not given.startswith(base):
            raise _path_refusal(given, f"it is not below the server's projects root {root}")
        text = given.removeprefix(base)
    steps = [step for step in text.split("/") if step not in {"", "."}]
    if not steps:
        raise _path_refusal(given, "it is the server's projects root, not a directory below it")
    if ".." in steps:
        raise _path_refusal(given, "it contains `..`")
    if ".git" in {step.lower() for step in steps}:
        raise _path_refusal(given, "it is inside a git directory")
    if any(ord(char) < ord(" ") or char == "\x7f" for char in given):
        raise _path_refusal(given, "it contains control characters")
    if len(text.encode()) > _MAX_PATH_BYTES or any(len(step.encode()) > _MAX_NAME_BYTES for step in steps):
        raise _path_refusal(
            given, f"a path can have at most {_MAX_PATH_BYTES} bytes, and each name in it {_MAX_NAME_BYTES} bytes"
        )
    return "/".join(steps)


def check_url(given: str) -> str:
    """Check a repository URL that the worker passes to git. It must not contain credentials."""
    try:
        parts = urlsplit(given)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise _url_refusal(given, "it is not a valid URL") from None
    if parts.scheme not in {"https", "http"} or not host:
        raise _url_refusal("", "it must start with https:// or http:// and contain a host")
    if not _HOST_PATTERN.fullmatch(host):
        raise _url_refusal("", f"{host!r} is not a valid host name")
    if parts.username is not None or parts.password is not None:
        raise _url_refusal("", "it contains credentials, which everyone who lists projects would see")
    if parts.query or parts.fragment or any(ord(char) <= ord(" ") or char in "\x7f\\" for char in given):
        raise _url_refusal(given, "it contains a query, a fragment, a space or a control character")
    return given.rstrip("/")


def check_branch(given: str, field: str = "branch") -> str:
    """Check a branch name by git's rules. It can never be read as a command-line option."""
    if not _BRANCH_PATTERN.fullmatch(given) or given.endswith(("/", ".")) or len(given.encode()) > _MAX_NAME_BYTES:
        raise InvalidRequest(
            f"{field}: {given!r} is not a valid branch name", field=field, help_text="Examples: main, release/2."
        )
    return given


def read_subdirectory(context: Mapping[str, Json]) -> str:
    """Read the directory in which programs start from a session's context. Return an empty string for the project
    itself.
    """
    given = context.get(SUBDIRECTORY_KEY, "")
    if not isinstance(given, str) or (given and not {"", ".", ".."}.isdisjoint(given.split("/"))):
        raise _context_refusal(
            SUBDIRECTORY_KEY, given, "Send a path in the first project, without `..`, for example `packages/website`."
        )
    return given


def read_base_commits(context: Mapping[str, Json]) -> Mapping[str, str]:
    """Read the commits that a session starts from, by project id."""
    given = context.get(BASE_COMMITS_KEY, {})
    found = {key: value for key, value in given.items() if isinstance(value, str)} if isinstance(given, dict) else {}
    if found != given or not all(_COMMIT_PATTERN.fullmatch(commit) for commit in found.values()):
        raise _context_refusal(BASE_COMMITS_KEY, given, "Send an object with the full commit id for each project id.")
    return found


def derive_name(location: str) -> str:
    """Derive a project's name from the last part of its path or URL."""
    last = PurePosixPath(unquote(urlsplit(location).path) if "://" in location else location).name.removesuffix(".git")
    name = _UNSAFE_CHARACTERS.sub("-", last).strip("-._")[:64]
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
        setup: str | None = None,
        cached_directories: Sequence[str] | None = None,
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


def _context_refusal(key: str, given: Json, help_text: str) -> InvalidRequest:
    field = f"context.{key}"
    return InvalidRequest(f"{field}: {given!r} cannot be used", field=field, help_text=help_text)


def _path_refusal(given: str, reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"path: {given!r} cannot be a project: {reason}",
        field="path",
        help_text="Use a path below FOOTPLATE_PROJECTS_ROOT, for example team/website.",
    )


def _url_refusal(given: str, reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"url: {f'{given!r} ' if given else ''}cannot be a project: {reason}".replace(": cannot", ": it cannot"),
        field="url",
        help_text="Example: https://git.example.com/team/website.git",
    )
