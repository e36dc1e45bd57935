"""Permission rules of projects. The rules belong to a location: a path below the projects root, or the URL of a
repository.

All projects at one location share its rules, including archived ones. A project that is created again at the same
location has the rules from the start. If a location has rules, only callers with the role `admin` or `policy_admin` may
create or archive a project there, or change its trust or branch.
"""

import posixpath
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from footplate.domain import audit
from footplate.domain.audit import AuditEntry
from footplate.domain.errors import Forbidden
from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import Permission, permissions_of
from footplate.domain.policy.permissions import POLICY_ADMIN
from footplate.domain.projects.project import Project

_RULES: Final = ("deny", "ask", "allow", "hooks")
_DEFAULT_PORTS: Final = frozenset({None, 80, 443})


def path_location(path: str) -> str:
    """Return the location key of a normalised project path; an empty path is the root. Workers follow no links below
    the root, so each directory has only one path.
    """
    return f"path:/{path}" if path else "path:"


def project_location(path: str | None, url: str | None) -> str:
    """Return the location key of a project. For a URL, parts that servers usually ignore are removed: scheme, case,
    default port, percent-encoding, `.git` and extra slashes.
    """
    if path is not None:
        return path_location(path)
    parts = urlsplit(url or "")
    port = "" if parts.port in _DEFAULT_PORTS else f":{parts.port}"
    url_path = posixpath.normpath("/" + unquote(parts.path).lower()).strip("/").removesuffix(".git").rstrip("/")
    return f"url:{(parts.hostname or '').rstrip('.')}{port}/{url_path}"


def has_rules(permissions: Mapping[str, Json]) -> bool:
    return any(permissions.get(name) for name in _RULES)


def merge_rules(one: JsonObject, other: JsonObject) -> JsonObject:
    """Merge the rules of two projects at the same location: everything that either one denies, asks about or hooks
    into, and only what both allow.
    """
    if not has_rules(one) or not has_rules(other):
        return one if has_rules(one) else other
    merged: JsonObject = {}
    for name in ("deny", "ask", "allow"):
        ours, theirs = _texts(one, name), _texts(other, name)
        merged[name] = [rule for rule in ours if rule in theirs] if name == "allow" else [*dict.fromkeys(ours + theirs)]
    hooks: dict[str, Json] = {}
    for rules in (one, other):
        found = rules.get("hooks")
        for event, groups in found.items() if isinstance(found, dict) else ():
            known = hooks.get(event)
            hooks[event] = [*(known if isinstance(known, list) else ()), *(groups if isinstance(groups, list) else ())]
    return {**merged, "hooks": hooks} if hooks else merged


def _texts(rules: JsonObject, name: str) -> list[Json]:
    found = rules.get(name)
    return found if isinstance(found, list) else []


def check_creation(principal: Principal, rules: Mapping[str, Json]) -> None:
    """Raise `Forbidden` if the location has rules and the principal lacks the role."""
    if has_rules(rules):
        _check_role(principal, "This location has permission rules, so creating a project there")


def check_update(principal: Principal, old: Project, new: Project) -> None:
    if _guarded_fields(new) != _guarded_fields(old) and has_rules(old.permissions):
        _check_role(principal, f"Project {old.name!r} has permission rules, so changing its trust, branch or setup")


def _guarded_fields(project: Project) -> tuple[object, ...]:
    cached = project.cached_directories
    return project.trust, project.branch, project.setup, None if cached is None else tuple(cached)


def check_archiving(principal: Principal, project: Project) -> None:
    if has_rules(project.permissions):
        _check_role(principal, f"Project {project.name!r} has permission rules, so archiving it")


def build_change_entry(action: str, new: Project, old: Project | None = None) -> AuditEntry:
    """Build the audit entry for a change to a project, with everything that determines which rules apply."""
    before: JsonObject = {} if old is None else {"before": _record(old)}
    return audit.build_change_entry(f"project.{action}", new.id, {**before, "after": _record(new)})


def _record(project: Project) -> JsonObject:
    return {
        "name": project.name,
        "path": project.path,
        "url": project.url,
        "branch": project.branch,
        "trust": project.trust.value,
        "permissions": project.permissions,
        "setup": project.setup,
        "cached_directories": None if project.cached_directories is None else [*project.cached_directories],
        "archived": project.archived_at is not None,
    }


def _check_role(principal: Principal, action: str) -> None:
    if Permission.CHANGE_POLICY not in permissions_of(principal.roles):
        raise Forbidden(
            f"{action} needs the role 'admin' or {POLICY_ADMIN!r}, which this API key does not have.",
            help_text=f"Use another key, or create one: footplate api-keys create --role {POLICY_ADMIN} --name …",
        )
