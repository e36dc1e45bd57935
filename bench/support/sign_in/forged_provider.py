"""An identity provider whose tokens can be forged: it checks PKCE as a real one does, and lets an attack change claims,
header and signature of the ID token that it returns.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import uvicorn
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import RSAKey
from joserfc.jws import JWSRegistry
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from footplate.stack.free_ports import LOOPBACK, find_free_port

CLIENT_ID: Final = "footplate"
CLIENT_SECRET: Final = "client-secret-of-the-claim-0123456789"
Forge = Callable[["Token"], str | None]


@dataclass(slots=True)
class Token:
    """The ID token that the provider is about to return."""

    provider: "ForgedProvider"
    claims: dict[str, Any]
    header: dict[str, Any]

    def sign(self, key: Any = None) -> str:
        algorithms = ["RS256", "HS256", "none"]
        registry = JWSRegistry(algorithms=algorithms, strict_check_header=False)
        return jwt.encode(self.header, self.claims, key or self.provider.key, registry=registry)


@dataclass(slots=True)
class ForgedProvider:
    issuer: str
    key: RSAKey = field(default_factory=lambda: new_key("k1"))
    published: list[dict[str, Any]] = field(default_factory=list)
    forge: Forge = Token.sign
    """Returns the ID token, or None for a response without one."""
    userinfo: dict[str, Any] | None = None
    """None: what the account says."""
    has_groups_in_token: bool = True
    grants: dict[str, dict[str, str]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    """Forgeries that could not be made, so their attacks showed nothing."""

    def __post_init__(self) -> None:
        self.published = [self.key.as_dict(private=False)]

    def reset(self) -> None:
        self.forge, self.userinfo, self.has_groups_in_token = Token.sign, None, True
        self.published = [self.key.as_dict(private=False)]

    def authorize(self, url: str, account: str) -> str:
        """Returns the callback URL for a person who signs in at the authorization URL."""
        query = dict(parse_qsl(urlsplit(url).query))
        code = secrets.token_urlsafe(16)
        self.grants[code] = {**query, "account": account}
        callback = {"code": code, "state": query["state"], "iss": self.issuer}
        return f"{query['redirect_uri']}?{urlencode(callback)}"

    async def describe(self, _request: Request) -> Response:
        endpoints = ("authorization", "token", "userinfo")
        return JSONResponse(
            {
                "issuer": self.issuer,
                "jwks_uri": f"{self.issuer}/jwks",
                "authorization_response_iss_parameter_supported": True,
                # A careless provider: it names algorithms that this client must not accept.
                "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
                "end_session_endpoint": f"{self.issuer}/end",
                **{f"{name}_endpoint": f"{self.issuer}/{name}" for name in endpoints},
            }
        )

    async def list_keys(self, _request: Request) -> Response:
        return JSONResponse({"keys": self.published})

    async def exchange(self, request: Request) -> Response:
        body = dict(parse_qsl((await request.body()).decode()))
        grant = self.grants.pop(body.get("code", ""), None)
        if grant is None or create_s256_code_challenge(body.get("code_verifier", "")) != grant["code_challenge"]:
            return JSONResponse({"error": "invalid_grant"}, 400)
        now, account = int(time.time()), grant["account"]
        claims: dict[str, Any] = {
            "iss": self.issuer,
            "sub": account,
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": grant["nonce"],
            "name": account,
            "email": f"{account}@example.com",
            "email_verified": True,
        }
        if self.has_groups_in_token:
            claims["groups"] = [account]
        try:
            text = self.forge(Token(self, claims, {"alg": "RS256", "kid": "k1"}))
        except Exception as error:
            self.faults.append(repr(error))
            raise
        response: dict[str, Any] = {"access_token": account, "token_type": "Bearer", "expires_in": 300}
        return JSONResponse(response if text is None else {**response, "id_token": text})

    async def describe_person(self, request: Request) -> Response:
        account = request.headers.get("authorization", "").removeprefix("Bearer ")
        return JSONResponse(self.userinfo or {"sub": account, "groups": [account]})


@asynccontextmanager
async def run_forged_provider() -> AsyncIterator[ForgedProvider]:
    port = find_free_port()
    provider = ForgedProvider(f"http://{LOOPBACK}:{port}")
    routes = [
        Route("/.well-known/openid-configuration", provider.describe),
        Route("/jwks", provider.list_keys),
        Route("/token", provider.exchange, methods=["POST"]),
        Route("/userinfo", provider.describe_person),
    ]
    config = uvicorn.Config(Starlette(routes=routes), host=LOOPBACK, port=port, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve())
    try:
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        yield provider
    finally:
        server.should_exit = True
        await serving


def new_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})
