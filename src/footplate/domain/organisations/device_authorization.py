"""Device authorization: a program without a browser, such as `footplate login`, shows a short code. A person opens the
dashboard in any browser, compares the code and lets the program sign in (RFC 8628).

The person's browser session must not outlive its API key through the new key. So the key of the program ends with the
key of the session, and a session that was started with the key of a program cannot approve another one.
"""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, Protocol

from footplate.domain.errors import Refused
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.sign_in import Browser

LIFETIME_SECONDS: Final = 600
INTERVAL_SECONDS: Final = 5
_ALPHABET: Final = "BCDFGHJKLMNPQRSTVWXZ"
"""Consonants without Y: no code is a word."""
_CODE_LENGTH: Final = 8
_SEPARATORS: Final = re.compile(r"[\s-]")

Decision = Literal["approve", "deny"]


class AuthorizationPending(Refused):
    """No person has decided yet."""

    code = "authorization_pending"

    def __init__(self) -> None:
        super().__init__("Nobody has approved this sign-in yet.", help_text="Ask again after the interval.")


class PollingTooFast(Refused):
    code = "slow_down"

    def __init__(self) -> None:
        super().__init__(
            "The program asks too often whether the sign-in is approved.",
            help_text=f"Wait {INTERVAL_SECONDS} seconds between two requests.",
        )


class AuthorizationDenied(Refused):
    code = "authorization_denied"
    status = 403

    def __init__(self) -> None:
        super().__init__("This sign-in was denied, or the person who approved it has lost access.")


class DeviceCodeExpired(Refused):
    code = "device_code_expired"

    def __init__(self) -> None:
        super().__init__("This sign-in has expired, or its key was already fetched.", help_text="Start again.")


class BrowserSessionRequired(Refused):
    """The request needs a browser session, which a person started without `footplate login`."""

    code = "browser_session_required"
    status = 403

    def __init__(self) -> None:
        super().__init__(
            "Only a person who is signed in with a browser can let a program sign in, and not with a key that "
            "`footplate login` has created.",
            help_text="Open the dashboard, sign in there, and open the page again.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDeviceAuthorization:
    device_code: str
    user_code: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceAuthorization:
    client_name: str
    """What the program says about itself. Nobody has checked it."""
    address: str
    created_at: datetime
    expires_at: datetime
    status: Literal["pending", "approved", "denied", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedLoginKey:
    key_id: str
    secret: str
    member_id: str
    member_name: str
    organisation: str
    expires_at: datetime


class DeviceAuthorizations(Protocol):
    async def begin(self, client_name: str, browser: Browser) -> NewDeviceAuthorization: ...

    async def find(self, principal: Principal, secret: str, user_code: str) -> DeviceAuthorization:
        """Return the authorization with this code. `secret` is that of the browser session. Raises `NotFound`."""

    async def decide(
        self, principal: Principal, secret: str, user_code: str, decision: Decision
    ) -> DeviceAuthorization:
        """Approve or deny a program in the name of the principal."""

    async def fetch_key(self, device_code: str, browser: Browser) -> IssuedLoginKey:
        """Create the key of an approved program. Raises `AuthorizationPending` and others until then."""


def new_user_code() -> str:
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(_CODE_LENGTH))
    return f"{letters[:4]}-{letters[4:]}"


def normalize_user_code(text: str) -> str:
    """Return the code as it is stored: a person may type it in lower case, and without the hyphen."""
    letters = _SEPARATORS.sub("", text).upper()
    return f"{letters[:4]}-{letters[4:]}"
