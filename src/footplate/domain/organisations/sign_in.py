"""Signing in with a browser: sessions, the secrets of their cookies, and the interface that stores them.

A browser session authenticates like an API key of the same member. Its secret is only in the browser's cookie. A
request that changes something also carries the CSRF token, which is derived from the secret. A page of another origin
can make the browser send the cookie, but cannot read the token.
"""

import hashlib
import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, Protocol

from footplate.domain.errors import Refused
from footplate.domain.organisations.principals import Principal, PrincipalKind

_PREFIX: Final = "fpb_"
"""Prefix of the secret of a browser session. API keys have another prefix."""
CODE_SECONDS: Final = 120
"""How long a one-time code works."""
_CSRF_CONTEXT: Final = b"footplate csrf token"
_MAX_USER_AGENT: Final = 200
_SHARED_NETWORK_BITS: Final = 64
"""One client usually has a whole IPv6 network of this size."""


class SignInLimitExceeded(Refused):
    """Too many attempts to sign in from one address failed."""

    code = "sign_in_limit_exceeded"
    status = 429
    retry_after: Final = 60.0

    def __init__(self) -> None:
        super().__init__(
            "Too many attempts to sign in from your address have failed.",
            help_text="Wait a minute. The operator can change this limit with FOOTPLATE_SIGN_IN_FAILURES.",
        )


class SignInMethod(StrEnum):
    API_KEY = "api_key"
    ONE_TIME_CODE = "one_time_code"
    OIDC = "oidc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """Where an attempt to sign in comes from."""

    address: str
    user_agent: str

    @classmethod
    def describe(cls, address: str, user_agent: str) -> "Browser":
        visible = "".join(character if character.isprintable() else "?" for character in user_agent)
        return cls(address=_network_of(address), user_agent=visible[:_MAX_USER_AGENT])


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    id: str
    member_id: str
    method: SignInMethod
    user_agent: str
    address: str
    created_at: datetime
    last_used_at: datetime
    """Recorded at most once a minute."""
    expires_at: datetime
    """When the session ends if it is not used until then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerProfile:
    """What a caller can read about itself, in addition to its principal."""

    kind: PrincipalKind
    email: str | None
    teams: Sequence[tuple[str, str]]
    """Id and name of each team."""
    expires_at: datetime | None
    """When the API key or the browser session ends."""
    key_id: str | None
    """The API key of the request, or the one that started its browser session. None: an identity provider did."""
    method: SignInMethod | None
    """How the browser session was started."""
    session_id: str | None
    """The browser session of the request. None: it was authenticated by an API key."""


class BrowserSessions(Protocol):
    async def start_with_key(self, api_key: str, browser: Browser) -> tuple[Principal, str]:
        """Start a session for the owner of an API key. Returns its secret. Raises `Unauthenticated`."""

    async def create_code(self, principal: Principal, api_key: str) -> str:
        """Create a code with which one browser can sign in once, as the owner of the API key."""

    async def start_with_code(self, code: str, browser: Browser) -> tuple[Principal, str]:
        """Start a session with a one-time code, which is used up, also if it has expired."""

    async def list_sessions(self, principal: Principal) -> Sequence[BrowserSession]:
        """Return the sessions of the principal that are valid, the newest first."""

    async def end_session(self, principal: Principal, session_id: str) -> None:
        """End a session of the principal. Raises `NotFound`."""

    async def end_session_of(self, secret: str) -> None:
        """End the session with this secret, if there is one."""

    async def load_profile(self, principal: Principal, secret: str) -> CallerProfile: ...


def new_session_secret() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def is_session_secret(secret: str) -> bool:
    return secret.startswith(_PREFIX)


def csrf_token(secret: str) -> str:
    """Return the token that a request with this session's cookie has to carry, unless it only reads."""
    digest = hmac.digest(secret.encode(), _CSRF_CONTEXT, hashlib.sha256)
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def is_csrf_token(secret: str, token: str) -> bool:
    return hmac.compare_digest(csrf_token(secret).encode(), token.encode())


def _network_of(address: str) -> str:
    try:
        found = ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        if not found.is_loopback:
            return str(ip_network((found, _SHARED_NETWORK_BITS), strict=False))
    return str(found)
