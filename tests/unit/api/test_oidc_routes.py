"""The two routes of signing in through an identity provider: a browser opens them itself, so every error leads it back
to the sign-in page.
"""

from collections.abc import AsyncIterator, Mapping

import httpx2
import pytest

from footplate.domain.errors import Conflict, FootplateError, Unavailable
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.sign_in import Browser
from footplate.domain.organisations.single_sign_on import (
    ExternalIdentity,
    ReturnedSignIn,
    SignInFailed,
    SingleSignOn,
)

from .conftest import BASE, Api, make_client

IDENTITY = ExternalIdentity(
    issuer="https://login.test", subject="1", name="ann", email=None, is_email_verified=False, groups=frozenset()
)


class FakeProvider:
    name = "Example"

    async def authorization_url(self, state: str, browser_secret: str) -> str:
        return f"https://login.test/authorize?state={state}"

    async def fetch_identity(self, parameters: Mapping[str, str], state: str, browser_secret: str) -> ExternalIdentity:
        return IDENTITY

    async def sign_out_url(self) -> str | None:
        return None


class FakeStore:
    def __init__(self) -> None:
        self.begin_error: FootplateError | None = None
        self.session_error: FootplateError | None = None
        self.failures: list[str] = []

    async def begin(self, return_to: str, browser: Browser) -> tuple[str, str]:
        if self.begin_error is not None:
            raise self.begin_error
        return "state", "secret"

    async def redeem(self, state: str, browser_secret: str | None) -> ReturnedSignIn:
        assert browser_secret == "secret"
        return ReturnedSignIn("/inbox")

    async def start_session(self, identity: ExternalIdentity, browser: Browser) -> tuple[Principal, str]:
        if self.session_error is not None:
            raise self.session_error
        return Principal("org_a", "memb_1", "ann", frozenset({"member"})), "fpb_session"

    async def check_failures(self, browser: Browser) -> None:
        pass

    async def record_failure(self, reason: str, browser: Browser) -> None:
        self.failures.append(reason)


@pytest.fixture
def store() -> FakeStore:
    return FakeStore()


@pytest.fixture
async def browser(api: Api, store: FakeStore) -> AsyncIterator[httpx2.AsyncClient]:
    app = api.build(single_sign_on=SingleSignOn(FakeProvider(), store))
    async with make_client(app, None) as client:
        yield client


async def test_a_person_comes_back_with_a_session(browser: httpx2.AsyncClient) -> None:
    assert (await browser.get("/v1/sign_in/oidc")).status_code == 303
    done = await browser.get("/v1/sign_in/oidc/callback?state=state&code=c")
    assert (done.status_code, done.headers["location"]) == (303, f"{BASE}/inbox")
    assert browser.cookies["footplate_80"] == "fpb_session"


@pytest.mark.parametrize(
    ("error", "reason", "recorded"),
    [
        (SignInFailed("no_role", "No group gives you a role."), "no_role", ["no_role"]),
        (Unavailable("The database does not respond."), "unavailable", []),
        (Conflict("There is already a member with this name."), "conflict", []),
    ],
)
async def test_every_error_leads_back_to_the_sign_in_page(
    browser: httpx2.AsyncClient, store: FakeStore, error: FootplateError, reason: str, recorded: list[str]
) -> None:
    store.session_error = error
    await browser.get("/v1/sign_in/oidc")
    failed = await browser.get("/v1/sign_in/oidc/callback?state=state&code=c")
    assert (failed.status_code, failed.headers["location"]) == (303, f"{BASE}/sign-in?error={reason}")
    assert not [name for name in browser.cookies if name.startswith("footplate")]
    assert store.failures == recorded
    store.begin_error = error
    started = await browser.get("/v1/sign_in/oidc")
    assert (started.status_code, started.headers["location"]) == (303, f"{BASE}/sign-in?error={reason}")
