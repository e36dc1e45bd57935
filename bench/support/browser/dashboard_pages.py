"""The addresses of all pages of the dashboard, and realistic content for them."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

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


def list_pages(ids: Mapping[str, str]) -> dict[str, str]:
    """Returns the address of each page by a short name. `ids`: those of the sessions by title."""
    work, pipeline = f"/sessions/{ids['Make the tests pass']}", f"/sessions/{ids['Release pipeline']}"
    return {
        "inbox": "/inbox",
        "sessions": "/sessions",
        "board": "/sessions?layout=board",
        "new-session": "/new",
        "session-conversation": work,
        "session-changes": f"{work}?tab=changes",
        "session-files": f"{work}?tab=files",
        "session-terminal": f"{work}?tab=terminal",
        "session-steps": f"{pipeline}?tab=steps",
        "session-children": f"{pipeline}?tab=children",
        "session-forks": f"{work}?tab=forks",
        "compare": f"/compare?sessions={ids['Make the tests pass']},{ids['Fix a typo in README']}",
        "schedules": "/schedules",
        "usage": "/usage",
        "policy": "/policy",
        "policy-edit": "/policy?section=edit",
        "policy-explain": f"/policy?section=explain&call={quote('git push && make test')}",
        "policy-audit": "/policy?section=audit",
        "policy-hooks": "/policy?section=hooks",
        "settings": "/settings",
        "health": "/health",
        "design": "/design",
    }


async def create_pages_content(cluster: Cluster) -> dict[str, str]:
    """Creates the sessions of the dashboard's content, and a queue and forks for the tabs that show them."""
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
    return {**ids, "Release pipeline": pipeline}
