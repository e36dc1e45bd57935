"""In-memory fake of browser sessions. The real ones are in tests/integration/store/test_browser_sessions.py."""

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from footplate.domain import ids
from footplate.domain.errors import NotFound, Unauthenticated
from footplate.domain.organisations.device_authorization import (
    AuthorizationPending,
    Decision,
    DeviceAuthorization,
    IssuedLoginKey,
    NewDeviceAuthorization,
)
from footplate.domain.organisations.principals import Principal, PrincipalKind
from footplate.domain.organisations.sign_in import (
    Browser,
    BrowserSession,
    CallerProfile,
    SignInMethod,
    new_session_secret,
)

_NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class FakeBrowserSessions:
    keys: MutableMapping[str, Principal]
    """All valid secrets: API keys, and those of the sessions."""
    codes: dict[str, str] = field(default_factory=dict)
    sessions: dict[str, BrowserSession] = field(default_factory=dict)
    """By their secrets."""

    async def start_with_key(self, api_key: str, browser: Browser) -> tuple[Principal, str]:
        return self._start(api_key, SignInMethod.API_KEY, browser)

    async def create_code(self, principal: Principal, api_key: str) -> str:
        code = ids.new_id("code")
        self.codes[code] = api_key
        return code

    async def start_with_code(self, code: str, browser: Browser) -> tuple[Principal, str]:
        return self._start(self.codes.pop(code, ""), SignInMethod.ONE_TIME_CODE, browser)

    def _start(self, api_key: str, method: SignInMethod, browser: Browser) -> tuple[Principal, str]:
        if api_key not in self.keys:
            raise Unauthenticated("This is not valid.")
        principal, secret = self.keys[api_key], new_session_secret()
        self.keys[secret] = principal
        self.sessions[secret] = BrowserSession(
            id=ids.new_id(ids.BROWSER_SESSION),
            member_id=principal.id,
            method=method,
            user_agent=browser.user_agent,
            address=browser.address,
            created_at=_NOW,
            last_used_at=_NOW,
            expires_at=_NOW,
        )
        return principal, secret

    async def list_sessions(self, principal: Principal) -> Sequence[BrowserSession]:
        return [session for session in self.sessions.values() if session.member_id == principal.id]

    async def end_session(self, principal: Principal, session_id: str) -> None:
        for secret, session in self.sessions.items():
            if session.id == session_id and session.member_id == principal.id:
                return await self.end_session_of(secret)
        raise NotFound("browser session", session_id)

    async def end_session_of(self, secret: str) -> None:
        self.sessions.pop(secret, None)
        self.keys.pop(secret, None)

    async def load_profile(self, principal: Principal, secret: str) -> CallerProfile:
        session = self.sessions.get(secret)
        return CallerProfile(
            kind=PrincipalKind.PERSON,
            email=None,
            teams=[],
            expires_at=None if session is None else session.expires_at,
            key_id="key_x",
            method=None if session is None else session.method,
            session_id=None if session is None else session.id,
        )


class FakeDeviceAuthorizations:
    """Accepts no code. The real ones are in tests/integration/store/test_device_authorizations.py."""

    async def begin(self, client_name: str, browser: Browser) -> NewDeviceAuthorization:
        return NewDeviceAuthorization(device_code=client_name, user_code="BCDF-GHJK")

    async def find(self, principal: Principal, secret: str, user_code: str) -> DeviceAuthorization:
        raise NotFound("device authorization", user_code)

    async def decide(
        self, principal: Principal, secret: str, user_code: str, decision: Decision
    ) -> DeviceAuthorization:
        raise NotFound("device authorization", user_code)

    async def fetch_key(self, device_code: str, browser: Browser) -> IssuedLoginKey:
        raise AuthorizationPending
