"""`/v1/members` and `/v1/api_keys`: what is accepted, and that only the response that creates a secret shows it."""

import httpx2

from footplate.api.wire.members import ApiKeyResponse, MemberResponse, NewApiKeyResponse

from .conftest import Api
from .fake_services import ALICE


async def test_a_member_gets_a_key_which_is_rotated_and_revoked(http: httpx2.AsyncClient) -> None:
    created = await http.post("/v1/members", json={"name": "ann", "roles": ["operator"]})
    member = MemberResponse.model_validate(created.json())
    assert (member.kind, member.roles) == ("person", ["operator"])
    body = {"name": "laptop", "member_id": member.id, "roles": ["viewer"], "expires_at": "2030-01-01T00:00:00Z"}
    key = NewApiKeyResponse.model_validate((await http.post("/v1/api_keys", json=body)).json())
    assert (key.member_id, key.created_by, key.secret) == (member.id, ALICE.id, f"secret of {key.id}")
    rotated = await http.post(f"/v1/api_keys/{key.id}/rotate")
    assert rotated.json()["secret"] == f"another secret of {key.id}"
    revoked = ApiKeyResponse.model_validate((await http.post(f"/v1/api_keys/{key.id}/revoke")).json())
    assert revoked.revoked_at is not None
    for path in ("/v1/api_keys", f"/v1/api_keys/{key.id}", "/v1/members", f"/v1/members/{member.id}"):
        assert "secret of" not in (await http.get(path)).text


async def test_a_secret_is_in_no_stored_response(api: Api, http: httpx2.AsyncClient) -> None:
    headers = {"idempotency-key": "one"}
    assert (await http.post("/v1/api_keys", json={"name": "ci"}, headers=headers)).status_code == 200
    assert "secret of" not in str(api.world.responses)


async def test_administrators_cannot_lock_themselves_out(http: httpx2.AsyncClient) -> None:
    for body in ({"disabled": True}, {"roles": ["member"]}):
        response = await http.post(f"/v1/members/{ALICE.id}", json=body)
        assert response.status_code == 409, response.text
    for roles in ([], ["Not A Role"], None):
        assert (await http.post(f"/v1/members/{ALICE.id}", json={"roles": roles})).status_code == 400
