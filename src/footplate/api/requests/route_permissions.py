"""The permission that each route requires. This is the only place where the API checks roles for a route. The table for
users is in docs/identities.md.

A request that reads requires `view`, and one that writes requires `operate`. The exceptions are listed here. Three
routes check more themselves: sending events, where each kind of event has its own permission, changing a project,
where only its rules require `change_policy`, and creating a webhook endpoint, which requires `manage_members` unless it
is for one session.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from footplate.domain.errors import Forbidden
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.roles import Permission, check_permission
from footplate.domain.sessions.steps import StepDefinition

_READING_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_EXCEPTIONS: Final[Mapping[tuple[str, str], tuple[Permission, ...]]] = {
    ("POST", "/v1/sessions/{session_id}/events"): (Permission.OPERATE, Permission.APPROVE),
    ("PUT", "/v1/sessions/{session_id}/pin"): (Permission.VIEW,),
    ("DELETE", "/v1/sessions/{session_id}/pin"): (Permission.VIEW,),
    ("POST", "/v1/inbox/{item_id}"): (Permission.OPERATE, Permission.APPROVE),
    ("POST", "/v1/limits"): (Permission.MANAGE_MEMBERS,),
    ("DELETE", "/v1/browser_sessions/current"): (Permission.VIEW,),
    ("DELETE", "/v1/browser_sessions/{browser_session_id}"): (Permission.VIEW,),
    ("POST", "/v1/browser_sessions/one_time_codes"): (Permission.VIEW,),
    ("POST", "/v1/device_authorizations/{user_code}"): (Permission.VIEW,),
    ("DELETE", "/v1/me/api_key"): (Permission.VIEW,),
    ("POST", "/v1/notification_settings"): (Permission.VIEW,),
    ("POST", "/v1/push_subscriptions"): (Permission.VIEW,),
    ("DELETE", "/v1/push_subscriptions/{subscription_id}"): (Permission.VIEW,),
    ("POST", "/v1/push_subscriptions/{subscription_id}/test"): (Permission.VIEW,),
    ("POST", "/v1/policies"): (Permission.CHANGE_POLICY,),
    ("POST", "/v1/policies/explain"): (Permission.VIEW,),
    ("POST", "/v1/policies/import"): (Permission.VIEW,),
    ("POST", "/v1/policies/replay"): (Permission.VIEW,),
    ("POST", "/v1/projects"): (Permission.OPERATE, Permission.CHANGE_POLICY),
    ("POST", "/v1/projects/{project_id}"): (Permission.OPERATE, Permission.CHANGE_POLICY),
    ("POST", "/v1/projects/{project_id}/archive"): (Permission.OPERATE, Permission.CHANGE_POLICY),
    ("POST", "/v1/webhook_endpoints"): (Permission.OPERATE, Permission.MANAGE_MEMBERS),
}
_MEMBER_ROUTES: Final = ("/v1/members", "/v1/api_keys", "/v1/workers", "/v1/queues")
"""Routes for administrators, also for reading. Workers and queues are those of the whole deployment."""
_OPERATOR_ROUTES: Final = ("/v1/webhook_endpoints",)
"""Routes that need `operate` also for reading: the URL of an endpoint may contain a secret."""
_RESTRICTED_KEY_ROUTES: Final = (
    *("/v1/sessions", "/v1/approvals", "/v1/questions", "/v1/inbox", "/v1/files"),
    *("/v1/me", "/v1/browser_sessions"),
    "/v1/device_authorizations",
)
"""The routes that an API key that is restricted to projects can use."""
_RESTRICTED_KEY_READS: Final = (
    "/v1/agents",
    "/v1/environments",
    "/v1/events",
    "/v1/projects",
    "/v1/teams",
    "/v1/usage",
    "/v1/audit",
)
"""Further routes that it can only read."""


def required_permissions(method: str, path: str) -> tuple[Permission, ...]:
    """Return the permissions of which a caller of the route needs one. `path` is the route's pattern."""
    if path.startswith(_MEMBER_ROUTES) or (path.startswith("/v1/teams") and method not in _READING_METHODS):
        return (Permission.MANAGE_MEMBERS,)
    is_read = method in _READING_METHODS and not path.startswith(_OPERATOR_ROUTES)
    default = Permission.VIEW if is_read else Permission.OPERATE
    return _EXCEPTIONS.get((method, path), (default,))


def serves_restricted_keys(method: str, path: str) -> bool:
    """Return whether the route serves API keys that are restricted to projects."""
    reads = method in _READING_METHODS and path.startswith(_RESTRICTED_KEY_READS) and path != "/v1/audit/verify"
    return reads or path.startswith(_RESTRICTED_KEY_ROUTES)


def check_delivery_steps(principal: Principal, definitions: Iterable[StepDefinition]) -> None:
    """Check that the caller may use the route that does what each step does, for steps that deliver."""
    for kind in {definition.kind for definition in definitions if definition.delivery is not None}:
        check_route(principal, "POST", f"/v1/sessions/{{session_id}}/{kind.value}")


def check_route(principal: Principal, method: str, path: str) -> None:
    check_permission(principal, *required_permissions(method, path))
    if principal.project_ids is not None and not serves_restricted_keys(method, path):
        raise Forbidden(
            f"The API key of {principal.name!r} is restricted to projects, and this request concerns the whole "
            "organisation.",
            help_text="Use a key that is not restricted to projects.",
        )
