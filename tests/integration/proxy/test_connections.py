"""Connections of organisations, and the credential of each provider, which only the proxy adds."""

import httpx2
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from footplate.domain.ports.harness import Endpoint
from footplate.lease_clock import lease_clock
from footplate.proxy.model_proxy import ModelProxy
from footplate.telemetry import metrics
from footplate.testing import ScriptedModel, replies, text, usage

from .conftest import Provider, run_server

KEY = "a-real-key-of-the-account"
CREDENTIAL_HEADERS = {"authorization", "x-api-key", "api-key", "x-goog-api-key"}


async def post(proxy: ModelProxy, organisation: str | None, path: str, body: bytes = b"{}") -> httpx2.Response:
    """Sends a request with the token of a new turn of this organisation."""
    grant = proxy.grant(deadline=lease_clock() + 60, organisation=organisation)
    base = next(iter(proxy.endpoints_for("", organisation).values())).base_url or ""
    url = f"{base.rsplit('/', 1)[0]}/{path}"
    headers = {"authorization": f"Bearer {grant.endpoints[path.partition('/')[0]].api_key}"}
    try:
        async with httpx2.AsyncClient(trust_env=False) as client:
            return await client.post(url, content=body, headers=headers)
    finally:
        await grant.aclose()


@pytest.mark.parametrize(
    ("endpoint", "path", "expected"),
    [
        (Endpoint(KEY, provider="anthropic"), "v1/messages", ("authorization", f"Bearer {KEY}")),
        (Endpoint(KEY, provider="openai"), "responses", ("authorization", f"Bearer {KEY}")),
        (Endpoint(KEY, provider="azure"), "chat/completions", ("api-key", KEY)),
        (Endpoint(KEY, provider="groq"), "chat/completions", ("authorization", f"Bearer {KEY}")),
        (Endpoint(KEY, provider="google"), "v1/models/g:streamGenerateContent?alt=sse", ("x-goog-api-key", KEY)),
        (Endpoint(KEY, provider="mistral"), "v1/chat/completions", ("authorization", f"Bearer {KEY}")),
        (Endpoint(KEY, provider="bedrock"), "model/a.b-v1%3A0/converse", ("authorization", f"Bearer {KEY}")),
        (Endpoint("", provider="vllm"), "chat/completions", None),
    ],
    ids=lambda value: value.provider if isinstance(value, Endpoint) else "",
)
async def test_each_provider_gets_its_key_where_it_expects_it(
    provider: Provider, endpoint: Endpoint, path: str, expected: tuple[str, str] | None
) -> None:
    endpoint = Endpoint(endpoint.api_key, provider.url, endpoint.provider)
    async with ModelProxy({"one": endpoint}) as proxy:
        assert (await post(proxy, None, f"one/{path}")).status_code == 200
    found = [header for header in provider.headers if header[0] in CREDENTIAL_HEADERS]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize(
    "path", ["v1/files", "v1/models/g:batchGenerateContent", "model/x/invoke", "v1beta/cachedContents"]
)
@pytest.mark.parametrize("name", ["google", "mistral", "bedrock", "vllm"])
async def test_only_model_requests_are_forwarded(provider: Provider, name: str, path: str) -> None:
    async with ModelProxy({name: Endpoint(KEY, provider.url)}) as proxy:
        response = await post(proxy, None, f"{name}/{path}")
    assert (response.status_code, provider.seen) == (404, [])
    assert "does not support this method and path" in response.text


async def test_requests_to_bedrock_are_signed(provider: Provider) -> None:
    endpoint = Endpoint(KEY, provider.url, "bedrock", "eu-central-1", "AKIDEXAMPLE")
    async with ModelProxy({"aws": endpoint}) as proxy:
        assert (await post(proxy, None, "aws/model/a.b-v1%3A0/converse-stream", b'{"x": 1}')).status_code == 200
    headers = dict(provider.headers)
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    expected = AWSRequest("POST", f"{provider.url}/model/a.b-v1%3A0/converse-stream", data=b'{"x": 1}')
    expected.context["timestamp"] = headers["x-amz-date"]
    expected.headers["X-Amz-Date"] = headers["x-amz-date"]
    signer = SigV4Auth(Credentials("AKIDEXAMPLE", KEY), "bedrock", "eu-central-1")
    signature = signer.signature(signer.string_to_sign(expected, signer.canonical_request(expected)), expected)
    assert headers["authorization"].endswith(f"Signature={signature}")
    assert provider.bodies == [b'{"x": 1}']


@pytest.mark.requirement("F4")
async def test_an_organisation_cannot_use_the_connections_of_another() -> None:
    shared, own = Provider(), Provider()
    async with run_server(shared) as shared_url, run_server(own) as own_url:
        endpoints = {"openai": Endpoint(KEY, shared_url)}
        organisations = {"acme": {"openai": Endpoint("acme-key", own_url), "gpu": Endpoint("", own_url, "vllm")}}
        async with ModelProxy(endpoints, organisations) as proxy:
            assert list(proxy.endpoints) == ["openai"]
            assert list(proxy.endpoints_for("", "acme")) == ["gpu", "openai"]
            for organisation in ("globex", None):
                grant = proxy.grant(deadline=lease_clock() + 60, organisation=organisation)
                assert list(grant.endpoints) == ["openai"]
                base = (grant.endpoints["openai"].base_url or "").removesuffix("openai")
                async with httpx2.AsyncClient(trust_env=False) as client:
                    headers = {"authorization": f"Bearer {grant.endpoints['openai'].api_key}"}
                    refused = await client.post(f"{base}gpu/chat/completions", headers=headers, json={})
                assert (refused.status_code, own.seen) == (404, [])
                await grant.aclose()
            assert (await post(proxy, "globex", "openai/responses")).status_code == 200
            assert ("authorization", f"Bearer {KEY}") in shared.headers
            assert (await post(proxy, "acme", "openai/responses")).status_code == 200
            assert ("authorization", "Bearer acme-key") in own.headers
    assert (len(shared.seen), len(own.seen)) == (1, 1)


async def test_relayed_tokens_are_counted_by_connection() -> None:
    def count(kind: str) -> float:
        return float(metrics.RELAYED_TOKENS.labels("counted", kind)._value.get())

    before = {kind: count(kind) for kind in ("input", "output", "cache_read")}
    script = replies([text("Hi."), usage(1000, 100, cache_read=500)])
    async with (
        ScriptedModel({"default": script}) as model,
        ModelProxy({"counted": Endpoint(KEY, model.openai_url, "openai")}) as proxy,
    ):
        body = b'{"input": "Hello", "model": "m", "stream": true}'
        assert (await post(proxy, None, "counted/responses", body)).status_code == 200
    assert {kind: count(kind) - before[kind] for kind in before} == {"input": 1000, "output": 100, "cache_read": 500}


async def test_a_connection_without_an_address_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a base URL"):
        ModelProxy({"gpu": Endpoint("", provider="vllm")})
    async with ModelProxy({"aws": Endpoint(KEY, provider="bedrock", region="eu-central-1")}) as proxy:
        connection = proxy._upstream.find_connection(None, "aws")
        assert connection is not None
        assert connection.url == "https://bedrock-runtime.eu-central-1.amazonaws.com"
