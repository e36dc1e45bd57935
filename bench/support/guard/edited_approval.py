"""Where two people have to approve, the second one replaces the command and approves it in one step."""

from bench.support.clients import Client, raw_client
from bench.support.cluster import open_cluster
from footplate import wiring
from footplate.config import Settings
from footplate.domain.sessions import events
from footplate.testing import replies, text, tool


async def attack() -> str | None:
    async with open_cluster() as cluster, Client(cluster) as client, raw_client(cluster) as admin:
        await cluster.model.install("asks", replies([tool("bash", {"command": "echo harmless"})], [text("Done.")]))
        terms = {"permissions": {"ask": ["Bash"]}, "approvals": {"two_people": True}}
        (await admin.post("/v1/policies", json=terms)).raise_for_status()
        session = await client.session()
        received = await client.run_turn(session, "Go. [[script:asks]]")
        settings = Settings(database_url=cluster.settings.database_url)
        secret = await wiring.create_key(settings, wiring.DEFAULT_ORGANISATION, "second person", ["member"])
        async with raw_client(cluster, key=secret) as second:
            decision = {
                "type": events.USER_TOOL_CONFIRMATION,
                "tool_use_id": received[-1]["stop_reason"]["event_ids"][0],
                "result": "allow",
                "updated_input": {"command": "touch EVIL"},
            }
            first_try = await second.post(f"/v1/sessions/{session}/events", json={"events": [decision]})
            second_try = await second.post(f"/v1/sessions/{session}/events", json={"events": [decision]})
    if first_try.is_success or second_try.is_success:
        return "one person wrote a command and approved it, where two people have to approve"
    return None
