"""A member archives a project that denies a command, creates it again without rules, and runs the command."""

import httpx2

from bench.support.clients import Client, raw_client
from bench.support.cluster import open_cluster
from footplate import wiring
from footplate.config import Settings
from footplate.domain.sessions import events
from footplate.testing import replies, text, tool


async def attack() -> str | None:
    async with open_cluster() as cluster, raw_client(cluster) as admin:
        await cluster.model.install("evil", replies([tool("bash", {"command": "touch EVIL"})], [text("Done.")]))
        made = await admin.post("/v1/projects", json={"path": "app", "permissions": {"deny": ["Bash(touch *)"]}})
        made.raise_for_status()
        settings = Settings(database_url=cluster.settings.database_url)
        secret = await wiring.create_key(settings, wiring.DEFAULT_ORGANISATION, "member", ["member"])
        async with raw_client(cluster, key=secret) as http, Client(cluster, key=secret) as client:
            where = f"/v1/projects/{made.json()['id']}"
            trusted = (await http.post(where, json={"trust": "all"})).status_code
            await http.post(f"{where}/archive")
            again = await http.post("/v1/projects", json={"path": "app", "name": "again"})
            if again.status_code != httpx2.codes.OK:
                return "a member made a project with rules trusted" if trusted == httpx2.codes.OK else None
            session = await client.session(extra_body={"project_ids": [again.json()["id"]]})
            received = await client.run_turn(session, "Go. [[script:evil]]")
    ran = [
        event
        for event in received
        if event["type"] == events.AGENT_TOOL_USE and event["evaluated_permission"] == "allow"
    ]
    return "a member archived a project with rules, created it again and ran a denied command" if ran else None
