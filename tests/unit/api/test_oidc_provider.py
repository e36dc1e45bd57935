"""The client of an identity provider against `oidc-provider-mock`, in the process of the test."""

import asyncio
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest

from footplate.api.routes.sign_in.oidc_provider import OidcConfig, OidcProvider
from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.single_sign_on import ExternalIdentity, SignInFailed, is_local_path

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import oidc_provider_mock

ISSUER = "http://127.0.0.1:9"
CONFIG = OidcConfig(
    issuer=ISSUER,
    client_id="footplate",
    client_secret="secret",
    name="Mock",
    scopes="openid profile email",
    groups_claim="groups",
    clock_skew=60,
    base_url="http://127.0.0.1:8700",
)


class _Mock(httpx2.AsyncBaseTransport):
    """Passes requests to the provider without a socket."""

    def __init__(self) -> None:
        claims: dict[str, object] = {
            "name": "Ann",
            "email": "ann@example.com",
            "email_verified": True,
            "groups": ["web", 7],
        }
        user = oidc_provider_mock.User(sub="ann", claims=claims)
        self.app = oidc_provider_mock.app(require_nonce=True, user_claims=[user]).test_client()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        content = await request.aread()
        response = await asyncio.to_thread(self._send, request, content)
        return httpx2.Response(response.status_code, headers=[*response.headers], content=response.data)

    def _send(self, request: httpx2.Request, content: bytes) -> Any:
        return self.app.open(
            str(request.url.raw_path, "ascii"),
            base_url=ISSUER,
            method=request.method,
            data=content,
            headers=[*request.headers.items()],
        )


@pytest.fixture
def mock() -> _Mock:
    return _Mock()


@pytest.fixture
def provider(mock: _Mock) -> OidcProvider:
    return OidcProvider(CONFIG, httpx2.AsyncClient(transport=mock))


async def sign_in(mock: _Mock, provider: OidcProvider, state: str = "s", secret: str = "b") -> ExternalIdentity:
    url = await provider.authorization_url("s", "b")
    response = await asyncio.to_thread(mock.app.post, url, base_url=ISSUER, data={"sub": "ann"})
    parameters = dict(parse_qsl(urlsplit(response.headers["location"]).query))
    return await provider.fetch_identity(parameters, state, secret)


async def test_the_identity_has_the_claims_of_the_person(mock: _Mock, provider: OidcProvider) -> None:
    found = await sign_in(mock, provider)
    assert (found.subject, found.name, found.email, found.is_email_verified) == ("ann", "Ann", "ann@example.com", True)
    assert found.groups == {"web"}


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "EC", "crv": "P-999", "x": "AA", "y": "AA"},
        {"kty": "RSA", "e": "AQAB"},
        {"kty": "OKP", "crv": "X448", "x": "AA"},
    ],
)
async def test_a_key_that_cannot_be_read_does_not_hide_the_others(
    mock: _Mock, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch, key: dict[str, str]
) -> None:
    request = provider._request

    async def with_key(method: str, url: str, **options: Any) -> tuple[int, JsonObject]:
        status, found = await request(method, url, **options)
        if "keys" in found:
            found["keys"] = [{**key, "kid": "unknown"}, *cast("list[JsonObject]", found["keys"])]
        return status, found

    monkeypatch.setattr(provider, "_request", with_key)
    assert (await sign_in(mock, provider)).subject == "ann"


async def change_metadata(provider: OidcProvider, monkeypatch: pytest.MonkeyPatch, change: Mapping[str, Json]) -> None:
    request = provider._request

    async def changed(method: str, url: str, **options: Any) -> tuple[int, JsonObject]:
        status, found = await request(method, url, **options)
        return status, {**found, **change} if "jwks_uri" in found else found

    monkeypatch.setattr(provider, "_request", changed)


@pytest.mark.parametrize("algorithms", [["none"], ["HS256"], [["RS256"]]])
async def test_a_provider_without_a_permitted_algorithm_is_refused(
    mock: _Mock, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch, algorithms: list[Json]
) -> None:
    await change_metadata(provider, monkeypatch, {"id_token_signing_alg_values_supported": algorithms})
    with pytest.raises(SignInFailed) as failed:
        await sign_in(mock, provider)
    assert failed.value.reason == "token_invalid"


@pytest.mark.parametrize("name", ["id_token_signing_alg_values_supported", "token_endpoint_auth_methods_supported"])
async def test_a_list_in_the_metadata_that_is_none_is_ignored(
    mock: _Mock, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    await change_metadata(provider, monkeypatch, {name: 5})
    assert (await sign_in(mock, provider)).subject == "ann"


async def test_metadata_of_the_wrong_type_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    issuer = "https://login.test"
    metadata: JsonObject = {
        "issuer": issuer,
        **dict.fromkeys(("authorization_endpoint", "token_endpoint", "jwks_uri"), f"{issuer}/x"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, json={**metadata, "op_tos_uri": 5}))
    provider = OidcProvider(replace(CONFIG, issuer=issuer), httpx2.AsyncClient(transport=transport))
    with pytest.raises(SignInFailed) as failed:
        await provider.authorization_url("s", "b")
    assert failed.value.reason == "provider_unavailable"


@pytest.mark.parametrize(("state", "secret"), [("other", "b"), ("s", "other")])
async def test_a_code_belongs_to_one_browser(mock: _Mock, provider: OidcProvider, state: str, secret: str) -> None:
    with pytest.raises(SignInFailed):
        await sign_in(mock, provider, state, secret)


async def test_a_provider_that_does_not_respond_is_named(mock: _Mock) -> None:
    def fail(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    provider = OidcProvider(CONFIG, httpx2.AsyncClient(transport=httpx2.MockTransport(fail)))
    with pytest.raises(SignInFailed) as failed:
        await provider.authorization_url("s", "b")
    assert failed.value.reason == "provider_unavailable"


@pytest.mark.parametrize(
    ("path", "is_local"),
    [
        ("/", True),
        ("/sessions?q=a#b", True),
        ("//a", False),
        ("/\\a", False),
        ("/\ta", False),
        ("a", False),
        ("", False),
    ],
)
def test_local_paths(path: str, *, is_local: bool) -> None:
    assert is_local_path(path) == is_local
