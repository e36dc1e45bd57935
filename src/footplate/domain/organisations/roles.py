"""Roles, and what each of them permits. Every API route requires one permission (`api/requests/route_permissions.py`).

An organisation can also use roles of its own, for example to require a release manager for an approval. They permit
nothing by themselves.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from footplate.domain.errors import Forbidden
from footplate.domain.organisations.principals import Principal


class Permission(StrEnum):
    VIEW = "view"
    """Read sessions, events, files, diffs, agents, projects, rules, usage and the audit trail."""
    OPERATE = "operate"
    """Create and change sessions, agents, environments, projects and files; send messages; deliver work."""
    APPROVE = "approve"
    """Decide tool calls that wait for approval."""
    CHANGE_POLICY = "change_policy"
    """Change the permission rules of the organisation and of projects."""
    MANAGE_MEMBERS = "manage_members"
    """Manage people, service accounts, API keys and limits."""


ROLES: Final[Mapping[str, frozenset[Permission]]] = {
    "viewer": frozenset({Permission.VIEW}),
    "operator": frozenset({Permission.VIEW, Permission.OPERATE}),
    "approver": frozenset({Permission.VIEW, Permission.APPROVE}),
    "member": frozenset({Permission.VIEW, Permission.OPERATE, Permission.APPROVE}),
    "policy_admin": frozenset({Permission.VIEW, Permission.CHANGE_POLICY}),
    "admin": frozenset(Permission),
}


def permissions_of(roles: Iterable[str]) -> frozenset[Permission]:
    return frozenset[Permission]().union(*(ROLES.get(role, frozenset()) for role in roles))


def restrict_roles(roles: Iterable[str], granted: Iterable[str]) -> frozenset[str]:
    """Return the roles of a key that its owner has too, directly or through a role that permits as much. Of a role that
    the owner has only in part, it returns that part: the role `member` of an operator's key is `operator`.
    """
    roles, granted = frozenset(roles), frozenset(granted)
    permitted = permissions_of(granted)
    shared = frozenset(role for role in roles if role in granted or (role in ROLES and ROLES[role] <= permitted))
    available = permissions_of(roles) & permitted
    if available <= permissions_of(shared):
        return shared
    parts = [role for role, permissions in ROLES.items() if permissions <= available]
    return shared | {role for role in parts if not any(ROLES[role] < ROLES[other] for other in parts)}


def check_permission(principal: Principal, *permissions: Permission) -> None:
    """Raise `Forbidden` unless the principal has one of these permissions."""
    if permissions_of(principal.roles).isdisjoint(permissions):
        names = [role for role, permitted in ROLES.items() if not permitted.isdisjoint(permissions)]
        raise Forbidden(
            f"This request needs one of the roles {', '.join(names)}, and the API key of {principal.name!r} has "
            f"{', '.join(sorted(principal.roles)) or 'none'}.",
            help_text=f"Use another key, or create one: footplate api-keys create --role {names[0]} --name …",
        )
