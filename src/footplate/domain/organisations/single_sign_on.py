"""Signing in through an identity provider: who a person is there, and the roles and teams that its groups give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol

from footplate.domain.errors import Refused
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.sign_in import Browser

MAX_RETURN_TO: Final = 2000
SIGN_IN_LIFETIME: Final = timedelta(minutes=10)
"""How long a person may take at the identity provider."""
_FIRST_VISIBLE: Final = "!"
_LAST_ASCII: Final = "~"


class SignInFailed(Refused):
    """An attempt to sign in through the identity provider failed. `reason` is for the sign-in page and the audit
    trail.
    """

    code = "sign_in_failed"
    status = 401

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message, help_text="Sign in again. If this persists, ask your administrator.")
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalIdentity:
    """A person as the identity provider describes it, after all checks of the token."""

    issuer: str
    subject: str
    name: str
    email: str | None
    is_email_verified: bool
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class GroupGrant:
    """What a group of the identity provider gives to its members here."""

    roles: frozenset[str] = frozenset()
    teams: frozenset[str] = frozenset()
    """Names of teams."""


@dataclass(frozen=True, slots=True)
class GroupMapping:
    groups: Mapping[str, GroupGrant] = field(default_factory=dict)
    default_roles: frozenset[str] = frozenset()
    """Roles of everyone who can sign in. Without one, a person needs a group that gives a role."""
    first_admin: str | None = None
    """The email of the person who administers a new organisation."""

    @property
    def teams(self) -> frozenset[str]:
        """All teams whose members come from groups."""
        return frozenset[str]().union(*(grant.teams for grant in self.groups.values()))

    def grant(self, groups: frozenset[str]) -> GroupGrant:
        grants = [grant for group, grant in self.groups.items() if group in groups]
        return GroupGrant(
            self.default_roles.union(*(grant.roles for grant in grants)),
            frozenset[str]().union(*(grant.teams for grant in grants)),
        )

    def names_first_admin(self, identity: ExternalIdentity) -> bool:
        """Whether the identity is the first administrator. Only an email counts that the provider has verified."""
        email = identity.email if identity.is_email_verified else None
        return self.first_admin is not None and email is not None and email.casefold() == self.first_admin.casefold()


@dataclass(frozen=True, slots=True)
class ReturnedSignIn:
    """A browser that came back from the identity provider with a valid state."""

    return_to: str


class IdentityProvider(Protocol):
    """The client of an identity provider."""

    @property
    def name(self) -> str:
        """Its name on the sign-in page."""

    async def authorization_url(self, state: str, browser_secret: str) -> str:
        """Return the address of the provider to which the browser is sent."""

    async def fetch_identity(self, parameters: Mapping[str, str], state: str, browser_secret: str) -> ExternalIdentity:
        """Exchange the code in the parameters of the callback. Raises `SignInFailed`."""

    async def sign_out_url(self) -> str | None:
        """Return the address at which the browser also signs out of the provider, if there is one."""


class SingleSignOnStore(Protocol):
    async def begin(self, return_to: str, browser: Browser) -> tuple[str, str]:
        """Remember a sign-in. Returns its state, and the secret for the browser's cookie."""

    async def redeem(self, state: str, browser_secret: str | None) -> ReturnedSignIn:
        """Use the state up. Raises `SignInFailed` unless this browser began this sign-in, a few minutes ago at most."""

    async def start_session(self, identity: ExternalIdentity, browser: Browser) -> tuple[Principal, str]:
        """Create or update the member, and start a session for it. Raises `SignInFailed` if it has no role here."""

    async def check_failures(self, browser: Browser) -> None:
        """Raise `SignInLimitExceeded` if too many attempts from this address failed."""

    async def record_failure(self, reason: str, browser: Browser) -> None:
        """Count a failure and add it to the audit trail."""


@dataclass(frozen=True, slots=True)
class SingleSignOn:
    provider: IdentityProvider
    store: SingleSignOnStore


def is_local_path(path: str) -> bool:
    """Return whether a browser that is sent to the path stays on this server. Browsers take a second slash or backslash
    for the start of a host name, and ignore tabs and line breaks in between.
    """
    is_plain = all(_FIRST_VISIBLE <= character <= _LAST_ASCII for character in path) and "\\" not in path
    return path.startswith("/") and not path.startswith("//") and is_plain and len(path) <= MAX_RETURN_TO


def choose_member_name(identity: ExternalIdentity) -> Sequence[str]:
    """Return names for a new member, the best first."""
    account = identity.email or identity.subject
    visible = "".join(character for character in identity.name if character.isprintable()).strip()[:120]
    named = visible or account
    return [named[:120], f"{named} ({account})"[:200], f"{named} ({identity.subject})"[:200]]
