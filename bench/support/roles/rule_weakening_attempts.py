"""Lists for every writing route the requests that try to weaken a project's rules, or the reason why it cannot.

An attempt is a request body. Whatever the response, a denied call is then tried in the session that the attempt created
and in other sessions of the same project.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bench.support.nested_references import SKIPPED_STEP

RULED_PROJECT_PATH: Final = "team/app"
"""The path of the project whose rules are attacked, below the projects root."""
DENIED_COMMAND: Final = "touch DENIED"
RULES: Final = {"deny": ["Bash(touch *)"], "ask": [], "allow": []}
_PERMISSIVE_RULES: Final = {"deny": [], "ask": [], "allow": ["Bash", "Edit", "Read"]}
_ALLOWING_HOOK_OUTPUT: Final = json.dumps(
    {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "permissionDecisionReason": "x",
        }
    }
)
_RULES_WITH_HOOK: Final = {
    **_PERMISSIVE_RULES,
    "hooks": {
        "PreToolUse": [{"matcher": "*", "hooks": [{"type": "command", "command": f"echo '{_ALLOWING_HOOK_OUTPUT}'"}]}]
    },
}
_TOOLSET: Final = {"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_allow"}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSetup:
    """The objects that an attempt uses. All but the projects are created anew for each attempt."""

    tag: str
    """A unique string for names."""
    directory: str
    """The directory of the project with rules, on the worker's machine."""
    ids: Mapping[str, str]
    """Ids by path parameter, and also `claude_agent_id`, `plain_project_id` and `call_id`."""
    transcript: Sequence[Mapping[str, Any]] = ()
    """Lines of a Claude Code transcript to import."""

    @property
    def start(self) -> dict[str, str]:
        return {"agent": self.ids["agent_id"], "environment_id": self.ids["environment_id"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
    lines: Sequence[Mapping[str, Any]] = ()
    """Transcript lines that follow the body."""
    is_invalid: bool = False
    """Whether every role receives 400: then nothing is attempted, and the audit trail need not contain it."""
    in_workspace: bool = False
    """Whether the session that tries the denied call uses the workspace that contains the project with rules."""

    @property
    def content(self) -> bytes:
        return b"\n".join(json.dumps(line).encode() for line in (self.body, *self.lines))


def _attempts(**bodies: Mapping[str, Any]) -> list[Attempt]:
    return [Attempt(name=name, body=body) for name, body in bodies.items()]


def _message(text: str = "Go.", **more: Any) -> dict[str, Any]:
    return {"type": "user.message", "content": [{"type": "text", "text": text}], **more}


def _create_project(setup: AttemptSetup) -> list[Attempt]:
    return _attempts(
        again={"path": RULED_PROJECT_PATH, "name": f"a-{setup.tag}"},
        again_without_rules={"path": RULED_PROJECT_PATH, "name": f"b-{setup.tag}", "permissions": {}},
        again_trusted={"path": f"./{RULED_PROJECT_PATH}/", "name": f"c-{setup.tag}", "trust": "all"},
        again_by_its_whole_path={"path": setup.directory, "name": f"d-{setup.tag}"},
        inside={"path": f"{RULED_PROJECT_PATH}/{setup.tag}", "name": f"e-{setup.tag}", "trust": "all"},
    )


def _update_project(_: AttemptSetup) -> list[Attempt]:
    return _attempts(
        trust={"trust": "all"},
        instructions={"trust": "instructions"},
        branch={"branch": "other"},
        no_rules={"permissions": None},
        empty_rules={"permissions": {}},
        other_rules={"permissions": _PERMISSIVE_RULES},
        hooks={"permissions": {**_RULES_WITH_HOOK, "deny": RULES["deny"]}},
    )


def _create_session(setup: AttemptSetup) -> list[Attempt]:
    on = {**setup.start, "project_ids": [setup.ids["project_id"]]}
    overrides = {"type": "agent_with_overrides", "id": setup.ids["agent_id"], "tools": [_TOOLSET]}
    return _attempts(
        rules={**on, "permissions": _PERMISSIVE_RULES},
        hooks={**on, "permissions": _RULES_WITH_HOOK},
        overrides={**on, "agent": overrides, "permissions": _PERMISSIVE_RULES},
        two_projects={
            **setup.start,
            "project_ids": [setup.ids["plain_project_id"], setup.ids["project_id"]],
            "permissions": _PERMISSIVE_RULES,
        },
        directory={**setup.start, "context": {"directory": setup.directory}, "permissions": _PERMISSIVE_RULES},
        directory_by_dots={
            **setup.start,
            "context": {"directory": f"{setup.directory}/."},
            "permissions": _PERMISSIVE_RULES,
        },
    )


def _create_batch(setup: AttemptSetup) -> list[Attempt]:
    on = {**setup.start, "project_ids": [setup.ids["project_id"]], "custom_id": "a", "prompt": "Hello"}
    return _attempts(
        rules={"requests": [{**on, "permissions": _PERMISSIVE_RULES}]},
        hooks={"requests": [{**on, "permissions": _RULES_WITH_HOOK}]},
    )


def _create_deployment(setup: AttemptSetup) -> list[Attempt]:
    on = {**setup.start, "project_ids": [setup.ids["project_id"]], "name": setup.tag, "steps": [SKIPPED_STEP]}
    return _attempts(
        rules={**on, "permissions": _PERMISSIVE_RULES},
        hooks={**on, "permissions": _RULES_WITH_HOOK},
    )


def _update_deployment(setup: AttemptSetup) -> list[Attempt]:
    on = {"project_ids": [setup.ids["project_id"]]}
    return _attempts(
        rules={**on, "permissions": _PERMISSIVE_RULES},
        hooks={**on, "permissions": _RULES_WITH_HOOK},
    )


def _create_trigger(setup: AttemptSetup) -> list[Attempt]:
    on = {**setup.start, "project_ids": [setup.ids["project_id"]], "name": setup.tag, "steps": [SKIPPED_STEP]}
    return _attempts(
        rules={**on, "permissions": _PERMISSIVE_RULES},
        hooks={**on, "permissions": _RULES_WITH_HOOK},
    )


def _update_session(_: AttemptSetup) -> list[Attempt]:
    return _attempts(
        rules={"permissions": _PERMISSIVE_RULES},
        hooks={"permissions": _RULES_WITH_HOOK},
        no_rules={"permissions": None},
        tools={"agent": {"tools": [_TOOLSET]}, "permissions": _PERMISSIVE_RULES},
    )


def _send_events(setup: AttemptSetup) -> list[Attempt]:
    decision = {"type": "user.tool_confirmation", "tool_use_id": setup.ids["call_id"], "result": "allow"}
    return [
        Attempt(name="edited", body={"events": [{**decision, "updated_input": {"command": DENIED_COMMAND}}]}),
        Attempt(name="session_rule", body={"events": [{**decision, "session_rule": "Bash(touch *)"}]}),
        Attempt(
            name="overrides",
            body={
                "events": [
                    _message(f"{DENIED_COMMAND} [[script:denied]]", overrides={"permissions": _PERMISSIVE_RULES})
                ]
            },
            is_invalid=True,
        ),
    ]


def _agents(setup: AttemptSetup) -> list[Attempt]:
    definition = {"name": setup.tag, "model": "claude-sonnet-4-5", "tools": [_TOOLSET]}
    return _attempts(
        rules={**definition, "permissions": _PERMISSIVE_RULES},
        hooks={**definition, "permissions": _RULES_WITH_HOOK},
        tools=definition,
    )


def _fork(setup: AttemptSetup) -> list[Attempt]:
    return _attempts(
        plain={}, agent={"agent": setup.ids["agent_id"]}, environment={"environment_id": setup.ids["environment_id"]}
    )


def _import(setup: AttemptSetup) -> list[Attempt]:
    body: dict[str, Any] = {**setup.start, "agent": setup.ids["claude_agent_id"], "title": setup.tag}
    body["context"] = {"directory": setup.directory}
    return [Attempt(name="directory", body=body, lines=setup.transcript)]


def _workspaces(setup: AttemptSetup) -> list[Attempt]:
    plain, ruled = setup.ids["plain_project_id"], setup.ids["project_id"]
    return [
        Attempt(name="beside", body={"name": setup.tag, "project_ids": [plain, ruled]}, in_workspace=True),
        Attempt(name="without", body={"name": setup.tag, "project_ids": [plain]}),
    ]


def _policies(_: AttemptSetup) -> list[Attempt]:
    return _attempts(
        rules={"permissions": _PERMISSIVE_RULES},
        none={"permissions": {}},
        hooks={"permissions": _RULES_WITH_HOOK},
        terms={"approvals": {"two_people": False, "outcome": "allow", "expires_after_seconds": 1}},
    )


def _environments(setup: AttemptSetup) -> list[Attempt]:
    return _attempts(open={"name": setup.tag, "config": {"type": "cloud", "networking": {"type": "unrestricted"}}})


def _empty_body(_: AttemptSetup) -> list[Attempt]:
    return [Attempt(name="plain")]


ATTEMPTS_BY_ROUTE: Final[Mapping[str, Callable[[AttemptSetup], Sequence[Attempt]]]] = {
    "POST /v1/projects": _create_project,
    "POST /v1/projects/{project_id}": _update_project,
    "POST /v1/projects/{project_id}/archive": _empty_body,
    "POST /v1/workspaces": _workspaces,
    "POST /v1/workspaces/{workspace_id}": _workspaces,
    "POST /v1/workspaces/{workspace_id}/archive": _empty_body,
    "POST /v1/agents": _agents,
    "POST /v1/agents/{agent_id}": _agents,
    "POST /v1/agents/{agent_id}/archive": _empty_body,
    "POST /v1/environments": _environments,
    "POST /v1/environments/{environment_id}": _environments,
    "POST /v1/environments/{environment_id}/archive": _empty_body,
    "DELETE /v1/environments/{environment_id}": _empty_body,
    "POST /v1/sessions": _create_session,
    "POST /v1/session_batches": _create_batch,
    "POST /v1/deployments": _create_deployment,
    "POST /v1/deployments/{deployment_id}": _update_deployment,
    "POST /v1/triggers": _create_trigger,
    "POST /v1/triggers/{trigger_id}/update": _update_deployment,
    "POST /v1/sessions/{session_id}": _update_session,
    "POST /v1/sessions/{session_id}/events": _send_events,
    "POST /v1/sessions/{session_id}/fork": _fork,
    "POST /v1/sessions/import": _import,
    "POST /v1/policies": _policies,
}
STEP_ATTEMPTS: Final[Mapping[str, tuple[Sequence[Mapping[str, Any]], Mapping[str, Any] | None]]] = {
    "command": ([{"kind": "shell", "command": DENIED_COMMAND}], None),
    "nested": ([{"kind": "shell", "command": f"bash -c '{DENIED_COMMAND}'"}], None),
    "edited": ([{"kind": "shell", "command": "true"}], {"command": DENIED_COMMAND}),
    "reference": (
        [
            {"kind": "shell", "name": "first", "command": "echo DENIED"},
            {"kind": "shell", "command": "touch ${steps.first.stdout}"},
        ],
        None,
    ),
    "program": (
        [
            {"kind": "shell", "name": "first", "command": "echo touch"},
            {"kind": "shell", "command": "env ${steps.first.stdout} DENIED"},
        ],
        None,
    ),
}
"""Steps that try the denied command, and how the last one is edited. The gate decides on each when it runs."""
HARMLESS_ROUTES: Final[Mapping[str, str]] = {
    "DELETE /v1/sessions/{session_id}": "a deleted session runs nothing",
    "POST /v1/sessions/{session_id}/archive": "an archived session runs nothing",
    "POST /v1/sessions/{session_id}/end": "an ended session runs nothing",
    "POST /v1/sessions/{session_id}/terminal": "no rule decides on what a person types there; the sandbox bounds it",
    "POST /v1/sessions/{session_id}/merge": "writes files of a project, and rules are in none of them",
    "POST /v1/sessions/{session_id}/push": "writes files of a project, and rules are in none of them",
    "POST /v1/questions/{question_id}/answer": "answers a question, and the gate decides on calls after it as before",
    "PUT /v1/sessions/{session_id}/pin": "changes which sessions the caller's lists show first",
    "DELETE /v1/sessions/{session_id}/pin": "changes which sessions the caller's lists show first",
    "POST /v1/inbox/{item_id}": "stores who takes care of an item, and until when it is hidden",
    "POST /v1/inbox/{item_id}/dismiss": "hides a failure or a conflict; approvals cannot be dismissed",
    "POST /v1/session_templates/{template_id}/archive": "an archived template is not listed",
    **dict.fromkeys(
        ("POST /v1/session_templates", "POST /v1/session_templates/{template_id}"),
        "stores the body of a request, and the request itself is checked when it creates a session",
    ),
    **dict.fromkeys(
        (
            "POST /v1/sessions/{session_id}/comments",
            "POST /v1/sessions/{session_id}/comments/{comment_id}",
            "DELETE /v1/sessions/{session_id}/comments/{comment_id}",
        ),
        "stores text that no rule is read from",
    ),
    "POST /v1/sessions/{session_id}/comments/send": "sends a message, and the gate decides on the calls after it",
    "POST /v1/files": "stores bytes that no rule is read from",
    "DELETE /v1/files/{file_id}": "removes bytes that no rule is read from",
    "POST /v1/sessions/{session_id}/resources": "puts a file into a session's tree, and rules are in none of them",
    "DELETE /v1/sessions/{session_id}/resources/{resource_id}": "removes a file from a session's list",
    **dict.fromkeys(
        (
            "POST /v1/sessions/{session_id}/steps",
            "POST /v1/sessions/{session_id}/steps/{step_id}",
            "POST /v1/sessions/{session_id}/steps/{step_id}/move",
            "POST /v1/sessions/{session_id}/steps/{step_id}/retry",
            "DELETE /v1/sessions/{session_id}/steps/{step_id}",
            "POST /v1/sessions/{session_id}/play",
            "POST /v1/sessions/{session_id}/pause",
            "POST /v1/sessions/{session_id}/next",
        ),
        "changes which step runs and when; the gate decides on each command when it runs, and steps have no rules",
    ),
    "POST /v1/session_batches/{batch_id}/cancel": "ends sessions, and an ended session runs nothing",
    "POST /v1/session_batches/{batch_id}/retry": "creates sessions with the rules that the caller's batch has given",
    **dict.fromkeys(
        (
            "POST /v1/deployments/{deployment_id}/run",
            "POST /v1/deployments/{deployment_id}/pause",
            "POST /v1/deployments/{deployment_id}/unpause",
            "POST /v1/deployments/{deployment_id}/archive",
        ),
        "decides when a session starts, with the rules that the deployment already has",
    ),
    "POST /v1/triggers/{trigger_id}": "starts a session or steps, with the rules that the trigger already has",
    "POST /v1/triggers/{trigger_id}/archive": "an archived trigger starts nothing",
    "POST /v1/triggers/{trigger_id}/rotate_secret": "changes who can sign deliveries, and the trigger has its rules",
    **dict.fromkeys(
        (
            "POST /v1/browser_sessions",
            "POST /v1/browser_sessions/one_time_codes",
            "DELETE /v1/browser_sessions/current",
            "DELETE /v1/browser_sessions/{browser_session_id}",
            "POST /v1/device_authorizations",
            "POST /v1/device_authorizations/token",
            "POST /v1/device_authorizations/{user_code}",
            "DELETE /v1/me/api_key",
        ),
        "signs a member in or out, with the roles that it has",
    ),
    "POST /v1/sessions/{session_id}/steps/{step_id}/result": "stores text that no rule is read from",
    **dict.fromkeys(
        (
            "POST /v1/members",
            "POST /v1/members/{member_id}",
            "POST /v1/teams",
            "POST /v1/teams/{team_id}",
            "POST /v1/api_keys",
            "POST /v1/api_keys/{key_id}/revoke",
            "POST /v1/api_keys/{key_id}/rotate",
            "POST /v1/limits",
        ),
        "requires the role admin",
    ),
    **dict.fromkeys(
        (
            "POST /v1/webhook_endpoints",
            "POST /v1/webhook_endpoints/{endpoint_id}",
            "DELETE /v1/webhook_endpoints/{endpoint_id}",
            "POST /v1/webhook_endpoints/{endpoint_id}/rotate_secret",
            "POST /v1/webhook_endpoints/{endpoint_id}/test",
            "POST /v1/webhook_endpoints/{endpoint_id}/deliveries/{delivery_id}/replay",
        ),
        "only sends events, and nothing is read from the response",
    ),
    **dict.fromkeys(
        (
            "POST /v1/notification_settings",
            "POST /v1/push_subscriptions",
            "DELETE /v1/push_subscriptions/{subscription_id}",
            "POST /v1/push_subscriptions/{subscription_id}/test",
        ),
        "changes where the caller is notified, and nothing is read from the response",
    ),
    "POST /v1/policies/explain": "evaluates rules for a call that does not run, and stores nothing",
    "POST /v1/policies/import": "reads rules and stores nothing",
    "POST /v1/policies/replay": "evaluates rules against past calls and stores nothing",
}


def find_unclassified_routes(operations: Sequence[str]) -> list[str]:
    """Returns writing routes that are in neither list, and listed names that are no route."""
    writing = {one for one in operations if not one.startswith("GET ")}
    return sorted(writing ^ {*ATTEMPTS_BY_ROUTE, *HARMLESS_ROUTES})
