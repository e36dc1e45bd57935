"""The addresses of all pages of the dashboard, and realistic content for them."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from bench.support.browser.dashboard_window import DashboardWindow
from bench.support.browser.settings_content import SettingsContent
from bench.support.clients import Client
from bench.support.cluster import Cluster
from bench.support.dashboard_content import create_content

_PIPELINE: Final[list[dict[str, Any]]] = [
    {"kind": "shell", "name": "build", "command": "make build || echo built"},
    {"kind": "shell", "name": "tests", "command": "echo '2 failed, 5 passed'; exit 1", "on_failure": "continue"},
    {
        "kind": "parallel",
        "name": "attempts",
        "branches": "best",
        "check": "grep -q 42 answer",
        "sessions": [{"name": "small", "shell": "echo 1 > answer"}, {"name": "clear", "shell": "echo 42 > answer"}],
    },
    {"kind": "external", "name": "review", "instructions": "Read the changes, and say whether they can be merged."},
    {"kind": "prompt", "name": "fix", "content": "Make the tests pass. They report:\n${steps.tests.stdout}"},
    {"kind": "merge", "name": "deliver", "into": "release", "message": "Make the tests pass"},
]


SIGN_IN: Final = "/sign-in"
"""The only page without the frame."""


def list_pages(ids: Mapping[str, str]) -> dict[str, str]:
    """Returns the address of each page by a short name. `ids`: those of sessions by title, and of other entries."""
    work, pipeline = f"/sessions/{ids['Make the tests pass']}", f"/sessions/{ids['Release pipeline']}"
    schedule = f"/schedules/{ids['schedule']}"
    return {
        "sign-in": SIGN_IN,
        "device": "/device",
        "device-refused": "/device?user_code=WDJB-MJHT",
        "inbox": "/inbox",
        "sessions": "/sessions",
        "board": "/sessions?layout=board",
        "new-session": "/new",
        "session-conversation": f"{work}?tab=conversation",
        "session-changes": f"{work}?tab=changes",
        "session-files": f"{work}?tab=files",
        "session-terminal": f"{work}?tab=terminal",
        "session-steps": f"{pipeline}?tab=steps",
        "session-children": f"{pipeline}?tab=children",
        "session-forks": f"{work}?tab=forks",
        "compare": f"/compare?sessions={ids['Make the tests pass']},{ids['Fix a typo in README']}",
        "schedules": "/schedules",
        "schedule": schedule,
        "schedule-new": "/schedules/new",
        "schedule-edit": f"{schedule}/edit",
        "usage": "/usage",
        "policy-rules": "/policy?section=rules",
        "policy-edit": "/policy?section=edit",
        "policy-explain": f"/policy?section=explain&call={quote('git push && make test')}",
        "policy-audit": "/policy?section=audit",
        "policy-hooks": "/policy?section=hooks",
        **_list_settings(ids),
        "health": "/health",
        "design": "/design",
    }


def _list_settings(ids: Mapping[str, str]) -> dict[str, str]:
    """The sections, and the entries and forms of those that have some."""
    pages = {
        f"settings-{section}": f"/settings?section={section}"
        for section in ("agents", "environments", "projects", "webhooks", "members", "teams", "limits", "notifications")
    }
    pages |= {
        "settings-keys": "/settings?section=keys&all=true",
        "settings-agent-versions": f"/settings?section=agents&item={ids['agent']}&versions=1-2",
    }
    for entry in ("agent", "environment", "project", "webhook"):
        section = f"/settings?section={entry}s"
        pages |= {
            f"settings-{entry}": f"{section}&item={ids[entry]}",
            f"settings-{entry}-edit": f"{section}&item={ids[entry]}&edit=true",
            f"settings-{entry}-new": f"{section}&item=new",
        }
    return pages


async def open_listed_page(window: DashboardWindow, address: str) -> None:
    """Opens an address of `list_pages` and waits until it is live, if it has the frame."""
    if address != SIGN_IN:
        await window.open_page(address)
        return
    await window.page.goto(window.base_url + address)
    await window.page.get_by_label("API key").wait_for()


async def create_pages_content(cluster: Cluster) -> dict[str, str]:
    """Creates the sessions of the dashboard's content, a queue and forks for the tabs that show them, and what the
    other pages list. Returns the ids for `list_pages`.
    """
    ids = await create_content(cluster)
    async with Client(cluster) as client:

        async def post(path: str, body: dict[str, Any]) -> Any:
            return await client.sdk.post(path, body=body, cast_to=dict[str, Any])

        original = ids["Make the tests pass"]
        first = await post(f"/v1/sessions/{original}/fork", {"title": "Fix it with statistics.median"})
        await post(f"/v1/sessions/{first['id']}/fork", {"title": "Explain it"})
        await post(f"/v1/sessions/{original}/fork", {"title": "Continue with the mean"})
        allows = {"harness": "native", "permissions": {"allow": ["Bash(*)"]}}
        pipeline = await client.session(await client.agent(extra_body=allows), title="Release pipeline")
        await post(f"/v1/sessions/{pipeline}/steps", {"steps": _PIPELINE})
        projects = await client.sdk.get("/v1/projects", cast_to=dict[str, Any])
        others = await SettingsContent(client).create(projects["data"][0]["id"])
    return {**ids, **others, "Release pipeline": pipeline}
