"""Client of an OpenID Connect provider: the authorization code flow with PKCE, by Authlib.

The nonce and the PKCE verifier are derived from the secret in the browser's cookie, so they are never stored, and a
code that was issued for another browser cannot be exchanged. The provider's keys are fetched for every sign-in: a key
that the provider has replaced or removed counts at once.
"""

import hashlib
import hmac
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx2
import orjson
import structlog
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import OpenIDProviderMetadata, get_well_known_url
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry, Key, KeySet
from joserfc.jws import JWSRegistry

from footplate.domain.json import Json, JsonObject
from footplate.domain.organisations.single_sign_on import ExternalIdentity, SignInFailed

CALLBACK_PATH: Final = "/v1/sign_in/oidc/callback"
_ALGORITHMS: Final = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"}
)
"""Signatures with a public key. With a shared secret, everyone who knows it could sign."""
_METADATA_SECONDS: Final = 3600.0
_TIMEOUT_SECONDS: Final = 10.0
_MAX_BYTES: Final = 1_000_000
_MAX_TEXT: Final = 500
_MAX_GROUPS: Final = 2000

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcConfig:
    issuer: str
    client_id: str
    client_secret: str | None
    name: str
    scopes: str
    groups_claim: str
    clock_skew: float
    base_url: str
    """The public address of this server."""


class OidcProvider:
    def __init__(self, config: OidcConfig, http: httpx2.AsyncClient | None = None) -> None:
        self._config = config
        self._http = http or httpx2.AsyncClient(timeout=_TIMEOUT_SECONDS, follow_redirects=False)
        self._metadata: tuple[float, Mapping[str, Any]] | None = None

    @property
    def name(self) -> str:
        return self._config.name

    async def aclose(self) -> None:
        await self._http.aclose()

    async def authorization_url(self, state: str, browser_secret: str) -> str:
        metadata = await self._load_metadata()
        url: str = prepare_grant_uri(
            metadata["authorization_endpoint"],
            self._config.client_id,
            "code",
            self._redirect_uri,
            self._config.scopes,
            state,
            nonce=_derive("nonce", state, browser_secret),
            code_challenge=create_s256_code_challenge(_derive("verifier", state, browser_secret)),
            code_challenge_method="S256",
        )
        return url

    async def fetch_identity(self, parameters: Mapping[str, str], state: str, browser_secret: str) -> ExternalIdentity:
        metadata = await self._load_metadata()
        self._check_response(metadata, parameters)
        token = await self._exchange(metadata, parameters["code"], _derive("verifier", state, browser_secret))
        claims = await self._verify(metadata, token, _derive("nonce", state, browser_secret))
        if self._config.groups_claim not in claims and metadata.get("userinfo_endpoint"):
            claims = {**await self._fetch_userinfo(metadata, token, str(claims["sub"])), **claims}
        return self._build_identity(claims)

    async def sign_out_url(self) -> str | None:
        endpoint = (await self._load_metadata()).get("end_session_endpoint")
        if not isinstance(endpoint, str):
            return None
        back = f"{self._config.base_url}/sign-in"
        query = httpx2.QueryParams({"client_id": self._config.client_id, "post_logout_redirect_uri": back})
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{query}"

    @property
    def _redirect_uri(self) -> str:
        return f"{self._config.base_url}{CALLBACK_PATH}"

    def _check_response(self, metadata: Mapping[str, Any], parameters: Mapping[str, str]) -> None:
        """A response of another provider must not be taken for one of this provider (RFC 9207)."""
        if metadata.get("authorization_response_iss_parameter_supported") and "iss" not in parameters:
            raise SignInFailed("issuer_invalid", "The response of the identity provider does not name its issuer.")
        if parameters.get("iss", self._config.issuer) != self._config.issuer:
            raise SignInFailed("issuer_invalid", "Another identity provider has sent this response.")
        if "error" in parameters:
            raise SignInFailed("provider_refused", "The identity provider refused to sign you in.")
        if not parameters.get("code"):
            raise SignInFailed("code_missing", "The response of the identity provider has no code.")

    async def _exchange(self, metadata: Mapping[str, Any], code: str, verifier: str) -> JsonObject:
        body = prepare_token_request(
            "authorization_code", code=code, redirect_uri=self._redirect_uri, code_verifier=verifier
        )
        headers = {"accept": "application/json", "content-type": "application/x-www-form-urlencoded"}
        auth = ClientAuth(self._config.client_id, self._config.client_secret, self._auth_method(metadata))
        url, headers, body = auth.prepare("POST", metadata["token_endpoint"], headers, body)
        status, token = await self._request("POST", url, content=body, headers=headers)
        if status != httpx2.codes.OK:
            log.warning("identity provider refused a code", action="sign_in.code_refused", error=token.get("error"))
            raise SignInFailed("code_refused", "The identity provider refused this sign-in.")
        return token

    def _auth_method(self, metadata: Mapping[str, Any]) -> str:
        if self._config.client_secret is None:
            return "none"
        supported = _listed(metadata, "token_endpoint_auth_methods_supported", default="client_secret_basic")
        return "client_secret_basic" if "client_secret_basic" in supported else "client_secret_post"

    async def _verify(self, metadata: Mapping[str, Any], token: JsonObject, nonce: str) -> dict[str, Json]:
        """Checks the signature and the claims of the ID token."""
        text = token.get("id_token")
        if not isinstance(text, str):
            raise SignInFailed("token_invalid", "The identity provider sent no ID token.")
        _, keys = await self._request("GET", metadata["jwks_uri"])
        try:
            registry = JWSRegistry(algorithms=_permitted_algorithms(metadata), strict_check_header=False)
            decoded = jwt.decode(text, _public_keys(keys), registry=registry)
            claims = CodeIDToken(
                decoded.claims,
                decoded.header,
                {
                    "iss": {"essential": True, "value": self._config.issuer},
                    "aud": {"essential": True, "value": self._config.client_id},
                },
                {"nonce": nonce, "client_id": self._config.client_id, "access_token": token.get("access_token")},
            )
            claims.validate(leeway=int(self._config.clock_skew))
            _check_strict_claims(decoded.header, claims, nonce)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            log.warning("ID token is not valid", action="sign_in.token_invalid", reason=repr(error)[:_MAX_TEXT])
            raise SignInFailed("token_invalid", "The ID token of the identity provider is not valid.") from error
        return dict(claims)

    async def _fetch_userinfo(self, metadata: Mapping[str, Any], token: JsonObject, subject: str) -> JsonObject:
        headers = {"authorization": f"Bearer {token.get('access_token')}", "accept": "application/json"}
        status, claims = await self._request("GET", metadata["userinfo_endpoint"], headers=headers)
        if status != httpx2.codes.OK or claims.get("sub") != subject:
            raise SignInFailed("userinfo_invalid", "The identity provider did not describe the same person.")
        return claims

    def _build_identity(self, claims: Mapping[str, Json]) -> ExternalIdentity:
        groups = claims.get(self._config.groups_claim)
        listed = groups if isinstance(groups, list) else [groups]
        email = claims.get("email")
        names = (claims.get(claim) for claim in ("name", "preferred_username", "email", "sub"))
        return ExternalIdentity(
            issuer=self._config.issuer,
            subject=str(claims["sub"]),
            name=next(name for name in names if isinstance(name, str) and name.strip())[:_MAX_TEXT],
            email=email[:_MAX_TEXT] if isinstance(email, str) else None,
            is_email_verified=claims.get("email_verified") is True,
            groups=frozenset(group for group in listed[:_MAX_GROUPS] if isinstance(group, str)),
        )

    async def _load_metadata(self) -> Mapping[str, Any]:
        if self._metadata is not None and self._metadata[0] > time.monotonic():
            return self._metadata[1]
        status, found = await self._request("GET", get_well_known_url(self._config.issuer, external=True))
        try:
            self._check_metadata(status, found)
        except (ValueError, TypeError, AttributeError) as error:  # Authlib expects values of the right types
            log.warning("identity provider has invalid metadata", action="sign_in.metadata_invalid", reason=str(error))
            raise SignInFailed("provider_unavailable", "The identity provider is not set up correctly.") from error
        self._metadata = (time.monotonic() + _METADATA_SECONDS, found)
        return found

    def _check_metadata(self, status: int, found: JsonObject) -> None:
        if status != httpx2.codes.OK:
            raise ValueError(f"status {status}")
        if found.get("issuer") != self._config.issuer:  # a provider must not speak for another one
            raise ValueError(f"issuer {found.get('issuer')!r}")
        if self._is_https:
            OpenIDProviderMetadata(found).validate()
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            self._check_endpoint(found.get(name))
        for name in ("userinfo_endpoint", "end_session_endpoint"):
            if found.get(name) is not None:
                self._check_endpoint(found[name])

    @property
    def _is_https(self) -> bool:
        return self._config.issuer.startswith("https://")

    def _check_endpoint(self, url: Json) -> None:
        """A provider with HTTPS must not send secrets to an address without it."""
        parts = urlsplit(url if isinstance(url, str) else "")
        if not parts.hostname or parts.scheme != ("https" if self._is_https else "http"):
            raise ValueError(f"invalid endpoint {str(url)[:_MAX_TEXT]!r}")

    async def _request(self, method: str, url: str, **options: Any) -> tuple[int, JsonObject]:
        """Sends a request and returns the status and the JSON object of the response."""
        body = bytearray()
        try:
            async with self._http.stream(method, url, **options) as response:
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > _MAX_BYTES:
                        break
            content = orjson.loads(body)
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            log.warning(
                "identity provider did not respond",
                action="sign_in.provider_unavailable",
                reason=repr(error)[:_MAX_TEXT],
            )
            raise SignInFailed("provider_unavailable", "The identity provider does not respond.") from error
        return response.status_code, content if isinstance(content, dict) else {}


def _listed(metadata: Mapping[str, Any], name: str, *, default: str) -> Sequence[str]:
    """Returns the texts in a list of the metadata, or the default without a list."""
    found = metadata.get(name)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) and found else [default]


def _permitted_algorithms(metadata: Mapping[str, Any]) -> list[str]:
    supported = _listed(metadata, "id_token_signing_alg_values_supported", default="RS256")
    permitted = sorted(_ALGORITHMS.intersection(supported))
    if not permitted:  # an empty list would permit the default algorithms of the library
        raise ValueError(f"no permitted algorithm in {supported!r}")
    return permitted


def _public_keys(document: JsonObject) -> KeySet:
    """Returns the provider's keys that verify signatures, without those that cannot be read."""
    found = document.get("keys")
    usable: list[Key] = []
    for key in found if isinstance(found, list) else []:
        if isinstance(key, dict) and key.get("kty") in {"RSA", "EC", "OKP"} and key.get("use", "sig") == "sig":
            with suppress(JoseError, ValueError, TypeError, KeyError):  # for example an unknown curve
                usable.append(JWKRegistry.import_key(cast("dict[str, str | list[str]]", key)))
    return KeySet(usable)


def _check_strict_claims(header: Mapping[str, Any], claims: Mapping[str, Any], nonce: str) -> None:
    """Checks what Authlib permits and this client does not need."""
    if "crit" in header:
        raise ValueError("the token has critical extensions")
    if not hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
        raise ValueError("nonce")
    subject = claims.get("sub")
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_TEXT:
        raise ValueError("sub")


def _derive(purpose: str, state: str, browser_secret: str) -> str:
    digest = hmac.digest(browser_secret.encode(), f"{purpose} {state}".encode(), hashlib.sha256)
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
