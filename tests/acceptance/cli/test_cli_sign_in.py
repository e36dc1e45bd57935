"""Signing in on the command line: a link for a browser, which then approves `footplate login`."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from tests.acceptance.cli.cli_cell import Cell, finish, fits

from footplate.client import AsyncFootplate


async def _json(cell: Cell, schema: str, *arguments: str) -> Any:
    done = await cell.run(*arguments, "--json")
    assert done.code == 0, (arguments, done.out, done.err)
    return fits(schema, done.out)


async def test_a_program_signs_in_and_out(cell: Cell, client: AsyncFootplate) -> None:
    link = await _json(cell, "dashboard", "dashboard")
    assert link["signs_in"] is True
    address = urlsplit(link["url"])
    origin = f"{address.scheme}://{address.netloc}"
    waiting = await cell.spawn("login", client.base_url, "--profile", "team", "--json")
    shown = ""
    while "user_code=" not in shown:
        shown += (await waiting.stderr.readline()).decode()
    user_code = shown.split("user_code=")[1].split()[0]
    async with httpx.AsyncClient(base_url=origin, headers={"origin": origin}) as browser:
        code = parse_qs(address.query or address.fragment)["code"][0]
        signed_in = await browser.post("/v1/browser_sessions", json={"one_time_code": code})
        assert signed_in.status_code == 200, signed_in.text
        token = (await browser.get("/v1/me")).json()["csrf_token"]
        decided = await browser.post(
            f"/v1/device_authorizations/{user_code}",
            json={"decision": "approve"},
            headers={"x-footplate-csrf": token},
        )
        assert decided.status_code == 200, decided.text
        assert (await browser.post("/v1/browser_sessions", json={"one_time_code": code})).status_code == 401
    done = await finish(waiting)
    assert done.code == 0, done.err
    assert fits("login", done.out)["profile"] == "team"
    principal = await _json(cell, "whoami", "whoami", "--profile", "team")
    assert principal["id"] == json.loads(done.out)["member_id"]
    assert (await _json(cell, "logout", "logout", "--profile", "team"))["revoked"] is True
    again = await cell.run("logout", "--profile", "team")
    assert (again.code, "has no API key" in again.err) == (1, True)
    refused = await cell.run("whoami")
    assert (refused.code, "footplate login" in refused.err) == (7, True)  # the profile stays the current one
    assert (await cell.run("config", "rm", "team")).code == 0


async def test_the_deployment_is_described(cell: Cell) -> None:
    workers = await _json(cell, "workers", "workers")
    assert "running" in [worker["state"] for worker in workers]
    assert len(await _json(cell, "queues", "queues")) >= 1
    assert (await _json(cell, "versions", "versions"))["schema_revision"]
