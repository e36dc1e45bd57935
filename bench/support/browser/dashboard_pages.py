"""The addresses of all pages of the dashboard, and realistic content for them."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from bench.support.browser.dashboard_window import DashboardWindow
from bench.support.cluster import Cluster
from bench.support.dashboard import sessions, work
from bench.support.dashboard_content import create_content

SIGN_IN: Final = "/sign-in"
"""The only page without the frame."""
_PROMPT: Final = "Add a page with the opening hours. Take the texts from docs/hours.md, and link it in the footer."


def list_pages(ids: Mapping[str, str]) -> dict[str, str]:
    """Returns the address of each page by a short name. `ids`: those of `create_pages_content`."""
    work_done, pipeline = f"/sessions/{ids[sessions.MEDIAN]}", f"/sessions/{ids[work.PIPELINE]}"
    schedule = f"/schedules/{ids['schedule']}"
    return {
        "sign-in": SIGN_IN,
        "device": f"/device?user_code={ids['device']}",
        "device-refused": "/device?user_code=WDJB-MJHT",
        "inbox": "/inbox",
        "sessions": "/sessions",
        "board": "/sessions?layout=board",
        "new-session": f"/new?agent_id={ids['agent']}&project_id={ids['project']}&prompt={quote(_PROMPT)}",
        "session-conversation": f"{work_done}?tab=conversation",
        "session-changes": f"{work_done}?tab=changes",
        "session-files": f"{work_done}?tab=files",
        "session-terminal": f"/sessions/{ids[sessions.INVESTIGATION]}?tab=terminal",
        "session-steps": f"{pipeline}?tab=steps",
        "session-children": f"{pipeline}?tab=children",
        "session-forks": f"{work_done}?tab=forks",
        "compare": f"/compare?sessions={ids[sessions.SORTED_ONCE]},{ids[sessions.SELECTED]}",
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
    """Creates the content. Returns the ids of sessions by title, and of what else has a page by its kind."""
    content = await create_content(cluster)
    created = content.organisation
    return {
        **content.sessions,
        "schedule": next(iter(content.schedules.values())),
        "agent": created.agents["website-engineer"],
        "environment": created.environments["offline"],
        "project": created.projects["website"],
        "webhook": content.webhook,
        "device": content.device_code,
    }
