"""No attack on signing in succeeds: forged tokens, replayed codes, hostile pages, DNS rebinding, stolen cookies.

The attacks run against an API process with its database. The same steps without the attack succeed before and after, so
a refusal is not an accident. The identity provider is one whose tokens can be forged; the real `oidc-provider` is in
the integration tests.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import httpx2

from bench.prove.figure import Figure, require
from bench.support.cluster import open_cluster
from bench.support.sign_in import browser_attacks, device_attacks, token_attacks
from bench.support.sign_in.attacked_server import PUBLIC_URL, Server
from bench.support.sign_in.forged_provider import CLIENT_ID, CLIENT_SECRET, run_forged_provider
from bench.support.sign_in.token_attacks import Attack

_MIN_ATTACKS = 50
_QUICK_STEP = 4
"""A sample runs every fourth attack."""


async def prove(quick: bool) -> Figure:  # noqa: FBT001 - every claim's signature
    attacks: dict[str, Attack] = {
        **token_attacks.list_attacks(),
        **browser_attacks.list_attacks(),
        **device_attacks.list_attacks(),
    }
    chosen = dict(list(attacks.items())[:: _QUICK_STEP if quick else 1])
    succeeded: list[str] = []
    async with _open_server() as server:
        await _check_valid_ways(server)
        for name, attack in chosen.items():
            if await attack(server):
                succeeded.append(name)
        await _check_valid_ways(server)
        require(holds=not server.provider.faults, otherwise=f"tokens were not forged: {server.provider.faults}")
    return Figure(
        headline=f"{len(chosen)} attacks on signing in: {len(succeeded)} succeeded",
        summary=f"{len(chosen)} attacks on the code flow, browser sessions, one-time codes and programs that sign in; "
        f"{len(succeeded)} succeeded{f': {succeeded}' if succeeded else ''}. The valid way worked before and after.",
        holds=not succeeded and (quick or len(chosen) >= _MIN_ATTACKS),
        details={"attacks": [*chosen], "succeeded": [*succeeded]},
    )


@asynccontextmanager
async def _open_server() -> AsyncIterator[Server]:
    groups = {"member": {"roles": ["member"]}, "attacker": {"roles": ["viewer"]}}
    async with run_forged_provider() as provider:
        environment = {
            "FOOTPLATE_PUBLIC_URL": PUBLIC_URL,
            "FOOTPLATE_OIDC_ISSUER": provider.issuer,
            "FOOTPLATE_OIDC_CLIENT_ID": CLIENT_ID,
            "FOOTPLATE_OIDC_CLIENT_SECRET": CLIENT_SECRET,
            "FOOTPLATE_OIDC_GROUPS": json.dumps(groups),
            "FOOTPLATE_OIDC_FIRST_ADMIN": "boss@example.com",
        }
        async with open_cluster(workers=0, environment=environment) as cluster:
            database = await asyncpg.connect(cluster.settings.database_url)
            try:
                async with httpx2.AsyncClient(base_url=cluster.base_urls[0], trust_env=False, timeout=60) as http:
                    server = Server(cluster, provider, database, http)
                    server.session_id = await _create_session(server)
                    yield server
            finally:
                await database.close()


async def _create_session(server: Server) -> str:
    agent = await server.call("POST", "/v1/agents", {"name": "a", "model": "claude-opus-5"})
    environment = await server.call("POST", "/v1/environments", {"name": "e"})
    fields = {"agent": agent["id"], "environment_id": environment["id"]}
    return str((await server.call("POST", "/v1/sessions", fields))["id"])


async def _check_valid_ways(server: Server) -> None:
    """Raises unless everybody who may sign in can."""
    person = server.browser()
    signed_in = await person.sign_in_with_oidc("member")
    location = signed_in.headers.get("location")
    require(holds=location == f"{PUBLIC_URL}/inbox", otherwise=f"the code flow ended at {location}")
    require(holds=await person.is_signed_in(), otherwise="the person is not signed in after the code flow")
    browser = server.browser()
    response = await browser.sign_in_with_key(server.cluster.key)
    require(holds=response.is_success, otherwise=f"signing in with a key: {response.text}")
    team = await browser.change("POST", "/v1/teams", {"name": f"team {browser.csrf[:8]}"})
    require(holds=team.is_success, otherwise=f"a change by cookie: {team.text}")
    require(holds=await browser.opens_socket(), otherwise="a WebSocket by cookie was refused")
    issued = await device_attacks.sign_in_device(server, server.cluster.key)
    require(holds=(await server.call("GET", "/v1/me", key=issued["api_key"]))["role"] == "admin", otherwise=str(issued))
    local = server.local_browser()
    headers = {"x-api-key": server.cluster.key, "host": f"127.0.0.1:{server.port}"}
    code = (await server.http.post("/v1/browser_sessions/one_time_codes", headers=headers)).json()["code"]
    redeemed = await local.change("POST", "/v1/browser_sessions", {"one_time_code": code})
    require(holds=redeemed.is_success, otherwise=f"a one-time code: {redeemed.text}")
