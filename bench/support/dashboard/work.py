"""Creates what surrounds the sessions: webhooks, schedules with runs, a queue, forks, comments, pins and templates."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bench.support.clients import Client
from bench.support.cluster import Cluster
from bench.support.dashboard import sessions
from bench.support.dashboard.organisation import Organisation, post
from bench.support.push.push_service import BrowserKeys
from footplate.stack.orphan_processes import wait_until
from footplate.testing.model_scripts import replies, reply
from footplate.testing.reply_steps import text

PIPELINE: Final = "Release 4.2 of the website"
_FAILED_ATTEMPT: Final = "upper_middle"
_SETTLED_WITHIN: Final = 60.0
_PIPELINE_STEPS: Final[list[dict[str, Any]]] = [
    {"kind": "shell", "name": "build", "command": "python3 build.py"},
    {"kind": "shell", "name": "tests", "command": "python3 -m unittest", "on_failure": "continue"},
    {
        "kind": "parallel",
        "name": "attempts",
        "branches": "best",
        "check": "python3 -m unittest -q",
        "sessions": [
            {"name": _FAILED_ATTEMPT, "shell": "sed -i 's/ordered.middle./ordered[middle - 1]/' stats.py"},
            {
                "name": "mean_of_both",
                "shell": "sed -i 's|ordered.middle.|(ordered[middle] + ordered[-middle - 1]) / 2|' stats.py",
            },
        ],
    },
    {"kind": "external", "name": "review", "instructions": "Read the changes, and say whether they can be merged."},
    {"kind": "prompt", "name": "notes", "content": "Write a line about the change into CHANGELOG.md."},
    {"kind": "prompt", "name": "docs", "content": "Correct docs/deploy.md if the pipeline has changed."},
    {"kind": "shell", "name": "build_again", "command": "python3 build.py"},
    {"kind": "merge", "name": "deliver", "into": "release", "message": "Release 4.2"},
]
_FORKS: Final = {
    "Use statistics.median instead": "Replace the function by the one of the standard library.",
    "Explain the fix to a beginner": "Explain the fix to someone who learns Python.",
}
_SCHEDULES: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "Update dependencies",
        "agent": "release-manager",
        "project": "mobile-app",
        "cron": "0 6 * * 1-5",
        "prompt": "Update all dependencies, run the tests, and push a branch if they pass.",
        "runs": 2,
    },
    {
        "name": "Nightly tests of the website",
        "agent": "website-engineer",
        "project": "website",
        "cron": "30 2 * * *",
        "prompt": "Run all tests. If one fails, find the commit that broke it.",
        "runs": 3,
    },
    {
        "name": "Weekly report of unpaid invoices",
        "agent": "billing-engineer",
        "project": "billing",
        "cron": "0 8 * * 1",
        "prompt": "List the invoices that are unpaid for more than thirty days.",
        "runs": 1,
    },
    {
        "name": "Check links of the documentation",
        "agent": "website-engineer",
        "project": "website",
        "cron": "15 6,18 * * *",
        "prompt": "Check every link in docs/, and correct those that moved.",
        "pause": True,
        "runs": 1,
    },
)
_TEMPLATES: Final = {
    "Fix a failing test": "Find the cause of the failing test, fix it, and run all tests again.",
    "Review a branch": "Read the changes of this branch. Report faults only, the worst first.",
}
_COMMENT: Final = "Please say in a comment why an even count needs two values."
_EVENTS: Final = ("session.requires_action", "session.error", "session.status_terminated")
_WEBHOOK: Final = "https://ci.northwind.example/hooks/footplate"
_CHAT: Final = "https://chat.northwind.example/hooks/T04/B81"
_USER_AGENTS: Final = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Linux; Android 16) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36",
)


async def create_webhooks(client: Client, receiver_url: str) -> str:
    """Creates two webhooks. Deliveries to the first one arrive at the receiver until `finish_webhooks`."""
    body = {"url": receiver_url, "event_types": [*_EVENTS], "description": "Comments on pull requests"}
    first = str((await post(client, "/v1/webhook_endpoints", body))["id"])
    body = {
        "url": _CHAT,
        "format": "slack",
        "event_types": ["approval.requested", "question.asked"],
        "description": "Channel #agents",
    }
    second = await post(client, "/v1/webhook_endpoints", body)
    await post(client, f"/v1/webhook_endpoints/{second['id']}", {"disabled": True})
    return first


async def finish_webhooks(client: Client, endpoint_id: str) -> None:
    await post(client, f"/v1/webhook_endpoints/{endpoint_id}/test", {})
    await asyncio.sleep(5)
    await post(client, f"/v1/webhook_endpoints/{endpoint_id}", {"url": _WEBHOOK, "event_types": [*_EVENTS[:2]]})


async def create_schedules(client: Client, organisation: Organisation) -> dict[str, str]:
    ids: dict[str, str] = {}
    for one in _SCHEDULES:
        body = {
            "name": one["name"],
            "agent": organisation.agents[one["agent"]],
            "environment_id": organisation.environments["default"],
            "project_ids": [organisation.projects[one["project"]]],
            "schedule": {"type": "cron", "expression": one["cron"], "timezone": "Europe/Stockholm"},
            "initial_events": [{"type": "user.message", "content": [{"type": "text", "text": one["prompt"]}]}],
            "ends_when_done": True,
            "overlap_policy": "skip",
        }
        ids[one["name"]] = schedule = str((await post(client, "/v1/deployments", body))["id"])
        for _ in range(one["runs"]):
            await post(client, f"/v1/deployments/{schedule}/run", {})
        if one.get("pause"):
            await post(client, f"/v1/deployments/{schedule}/pause", {})
    return ids


async def create_forks(cluster: Cluster, client: Client, session_id: str) -> None:
    answer = text("`statistics.median` does the same, and is tested. I replaced the function.")
    for title, prompt in _FORKS.items():
        fork = await post(client, f"/v1/sessions/{session_id}/fork", {"title": title})
        script = replies(reply(text(""), repeat=sessions.FORKED_AFTER), reply(answer, repeat=True))
        await cluster.model.install(fork["id"], script)
        await client.send_text(fork["id"], prompt)


async def create_pipeline(client: Client, organisation: Organisation) -> str:
    pipeline = await client.session(
        organisation.agents["website-engineer"],
        organisation.environments["default"],
        title=PIPELINE,
        extra_body={"project_ids": [organisation.projects["website"]]},
    )
    await post(client, f"/v1/sessions/{pipeline}/steps", {"steps": _PIPELINE_STEPS})
    return pipeline


async def add_notes(client: Client, organisation: Organisation, ids: Mapping[str, str]) -> None:
    """Adds what people note: a comment, pins, an assignment, a snooze, templates and browsers with notifications."""
    comment = {"path": "stats.py", "start_line": 11, "end_line": 12, "body": _COMMENT}
    await post(client, f"/v1/sessions/{ids[sessions.MEDIAN]}/comments", comment)
    for title in (sessions.MEDIAN, PIPELINE):
        await client.sdk.put(f"/v1/sessions/{ids[title]}/pin", cast_to=dict[str, Any])
    for name, prompt in _TEMPLATES.items():
        session = {
            "agent": organisation.agents["website-engineer"],
            "environment_id": organisation.environments["default"],
            "initial_events": [{"type": "user.message", "content": [{"type": "text", "text": prompt}]}],
        }
        await post(client, "/v1/session_templates", {"name": name, "session": session})
    await wait_until(lambda: _snooze_failed_attempts(client), _SETTLED_WITHIN)
    for number, user_agent in enumerate(_USER_AGENTS):
        keys = BrowserKeys(path="").to_json()
        endpoint = f"https://push.northwind.example/send/{number}"
        await client.sdk.post(
            "/v1/push_subscriptions",
            body={"endpoint": endpoint, "keys": keys},
            cast_to=dict[str, Any],
            options={"headers": {"user-agent": user_agent}},
        )
    quiet = {"start": "20:00", "end": "07:00", "timezone": "Europe/Stockholm"}
    await post(client, "/v1/notification_settings", {"enabled": True, "quiet_hours": quiet})


async def _snooze_failed_attempts(client: Client) -> bool:
    """Snoozes the failures of child sessions. Returns whether there was one."""
    inbox: Any = await client.sdk.get("/v1/inbox", cast_to=dict[str, Any])
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    failed = [item for item in inbox["data"] if item["session"]["title"] == _FAILED_ATTEMPT]
    for item in failed:
        await post(client, f"/v1/inbox/{item['id']}", {"snoozed_until": tomorrow})
    return failed != []
