"""The audit trail over HTTP: listing and verification."""

from dataclasses import replace

import httpx2
from tests.unit.api.conftest import Api
from tests.unit.api.fake_services import ALICE

from footplate.domain import audit


async def test_the_trail_is_listed_and_verified(api: Api, http: httpx2.AsyncClient) -> None:
    made = [audit.build_policy_entry({"deny": [f"Bash({number} *)"]}, {}) for number in range(3)]
    api.world.audit[ALICE.organisation] = [replace(one, created_at=api.world.now()) for one in made]
    first = (await http.get("/v1/audit", params={"limit": 2})).json()
    assert [entry["id"] for entry in first["data"]] == [entry.id for entry in made[:2]]
    assert first["next_page"] is not None
    assert first["data"][0]["content"]["permissions"] == {"deny": ["Bash(0 *)"]}
    assert (await http.get("/v1/audit", params={"kind": "answer"})).json()["data"] == []
    assert (await http.get("/v1/audit", params={"kind": "whatever"})).status_code == httpx2.codes.BAD_REQUEST
    checked = (await http.get("/v1/audit/verify")).json()
    assert (checked["type"], checked["entries"], checked["faults"]) == ("audit_verification", 3, [])


async def test_verification_checks_a_saved_head(http: httpx2.AsyncClient) -> None:
    assert (await http.get("/v1/audit/verify", params={"head": "0" * 64})).json()["faults"] == []
    assert len((await http.get("/v1/audit/verify", params={"head": "a" * 64})).json()["faults"]) == 1
    refused = await http.get("/v1/audit/verify", params={"head": "not a hash"})
    assert refused.status_code == httpx2.codes.BAD_REQUEST
