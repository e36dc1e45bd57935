"""Realistic content for Settings, Schedules and Policy: what an organisation of five has after some weeks."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bench.support.clients import MODEL, Client
from bench.support.push.push_service import BrowserKeys

_USER_AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
_LOOKUP: Final[dict[str, Any]] = {
    "type": "custom",
    "name": "look_up_ticket",
    "description": "Reads a ticket of the tracker.",
    "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}},
}
_MEMBERS: Final[list[dict[str, Any]]] = [
    {"name": "Ann Miller", "roles": ["operator"]},
    {"name": "Ben Ode", "roles": ["approver", "viewer"]},
    {"name": "Chiara Rossi with a name that is so long that a row has to cut it somewhere", "roles": ["member"]},
    {"name": "nightly builds", "roles": ["operator"], "kind": "service"},
    {"name": "Dan Former", "roles": ["viewer"]},
]
_LIMITS: Final[list[dict[str, Any]]] = [
    {"name": "sessions", "value": 500},
    {"name": "stored_bytes", "value": 20 * 1024**3},
]
_SCHEDULES: Final[list[dict[str, Any]]] = [
    {
        "name": "Weekday report",
        "description": "Summarises what was merged, for the meeting at ten.",
        "schedule": {"type": "cron", "expression": "0 9 * * 1-5", "timezone": "Europe/Berlin"},
    },
    {"name": "Leap day", "schedule": {"type": "cron", "expression": "0 0 29 2 *", "timezone": "UTC"}},
    {"name": "Release on request"},
]
_POLICY: Final[dict[str, Any]] = {
    "permissions": {
        "deny": ["Read(.env)"],
        "ask": ["Bash(git push *)", "Bash(rm *)"],
        "allow": ["Bash(npm run *)"],
        # No session of the content reads the web, so that no call waits for this command.
        "hooks": {"PreToolUse": [{"matcher": "WebFetch", "hooks": [{"type": "command", "command": "check-address"}]}]},
    },
    "approvals": {"expires_after_seconds": 7200, "role": "approver", "two_people": False},
}


class SettingsContent:
    """Creates the content, with the rights of `client`. `ids` has the id of what has a page, by a short name."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.ids: dict[str, str] = {}

    async def create(self, project_id: str) -> dict[str, str]:
        await self._create_agents()
        await self._create_environments()
        await self._create_project()
        await self._create_webhooks()
        await self._create_people(project_id)
        await self._create_browser()
        await self._create_schedules(project_id)
        await self._post("/v1/policies", _POLICY)
        return self.ids

    async def _post(self, path: str, body: dict[str, Any], **options: Any) -> dict[str, Any]:
        created: dict[str, Any] = await self._client.sdk.post(path, body=body, cast_to=dict[str, Any], **options)
        return created

    async def _create_agents(self) -> None:
        agent = await self._client.agent(
            name="release-manager",
            description="Prepares releases, and asks before it pushes.",
            system="You prepare releases.\n\n- Run all tests.\n- Write the notes.",
            extra_body={"harness": "native", "permissions": {"ask": ["Bash(git push *)"], "deny": ["Bash(rm *)"]}},
        )
        await self._post(
            f"/v1/agents/{agent}",
            {"system": "You prepare releases.\n\n- Run all tests.\n- Write the notes in English.", "version": 1},
        )
        self.ids["agent"] = agent
        old = await self._client.agent(name="reviewer of last year", model=MODEL, tools=[_LOOKUP])
        await self._post(f"/v1/agents/{old}/archive", {})

    async def _create_environments(self) -> None:
        networking = {"type": "limited", "allow_mcp_servers": True}
        body = {
            "name": "closed",
            "description": "For code that nobody has read yet.",
            "config": {"type": "cloud", "networking": networking},
        }
        self.ids["environment"] = (await self._post("/v1/environments", body))["id"]

    async def _create_project(self) -> None:
        body = {"name": "billing", "url": "https://git.example.com/billing.git", "branch": "main"}
        permissions = {"deny": ["Edit(migrations/**)"], "allow": ["Bash(make test)"]}
        self.ids["project"] = (await self._post("/v1/projects", {**body, "permissions": permissions}))["id"]

    async def _create_webhooks(self) -> None:
        body = {
            "url": "https://hooks.example.com/footplate",
            "event_types": ["session.requires_action", "session.status_terminated"],
            "description": "Tells the channel #agents",
            "ordered": True,
        }
        endpoint = (await self._post("/v1/webhook_endpoints", body))["id"]
        await self._post(f"/v1/webhook_endpoints/{endpoint}/test", {})
        paused = {"url": "https://old.example.com/hook", "event_types": []}
        paused_id = (await self._post("/v1/webhook_endpoints", paused))["id"]
        await self._post(f"/v1/webhook_endpoints/{paused_id}", {"disabled": True})
        self.ids["webhook"] = endpoint

    async def _create_people(self, project_id: str) -> None:
        ids = [(await self._post("/v1/members", each))["id"] for each in _MEMBERS]
        ann, _, chiara, builds, former = ids
        soon = datetime.now(UTC) + timedelta(days=3)
        await self._post("/v1/api_keys", {"name": "laptop", "member_id": ann})
        await self._post(
            "/v1/api_keys",
            {"name": "nightly", "member_id": builds, "project_ids": [project_id], "expires_at": soon.isoformat()},
        )
        leaked = await self._post("/v1/api_keys", {"name": "leaked", "member_id": former})
        await self._post(f"/v1/api_keys/{leaked['id']}/revoke", {})
        await self._post(f"/v1/members/{former}", {"disabled": True})
        await self._post("/v1/teams", {"name": "web", "member_ids": [ann, chiara]})
        await self._post("/v1/teams", {"name": "empty", "member_ids": []})
        for each in _LIMITS:
            await self._post("/v1/limits", each)
        await self._post("/v1/limits", {"name": "sessions", "value": 40, "scope": "member", "member_id": ann})

    async def _create_browser(self) -> None:
        keys = BrowserKeys("/browser").to_json()
        body = {"endpoint": "https://push.example.com/send/1", "keys": keys}
        await self._post("/v1/push_subscriptions", body, options={"headers": {"User-Agent": _USER_AGENT}})
        quiet_hours = {"start": "21:30", "end": "06:15", "timezone": "Europe/Berlin"}
        await self._post("/v1/notification_settings", {"quiet_hours": quiet_hours})

    async def _create_schedules(self, project_id: str) -> None:
        environment = await self._client.environment()
        for each in _SCHEDULES:
            body = {
                "agent": self.ids["agent"],
                "environment_id": environment,
                "project_ids": [project_id],
                "steps": [{"kind": "shell", "name": "report", "command": "echo built"}],
            }
            created = await self._post("/v1/deployments", {**body, **each})
            self.ids.setdefault("schedule", created["id"])
        await self._post(f"/v1/deployments/{self.ids['schedule']}/run", {})
