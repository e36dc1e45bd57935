"""`/v1/sign_in`: the ways to sign in, and the two routes of signing in through an identity provider.

A browser opens both routes itself, so they respond with redirects, also to errors. The state of a sign-in belongs to
one browser: the first route sets a cookie, without which the second one refuses the state.
"""

import hashlib
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

import structlog
from fastapi import Request
from starlette.responses import RedirectResponse, Response

from footplate.api.openapi import NO_AUTHENTICATION, describe_request
from footplate.api.requests import session_cookie
from footplate.api.requests.own_origin import is_served_by_https, own_base_url
from footplate.api.requests.parsing import read_query
from footplate.api.routes.sign_in.browser_sessions import COOKIE_LIFETIME, describe_browser, end_replaced_session
from footplate.api.routing import OpenRoute, create_router
from footplate.api.service_container import get_services
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response
from footplate.api.wire.sign_in import OidcCallback, SignInMethods, StartOidcSignIn
from footplate.domain.errors import FootplateError, InvalidRequest, NotFound, Refused, Unauthenticated
from footplate.domain.json import JsonObject
from footplate.domain.organisations.sign_in import Browser
from footplate.domain.organisations.single_sign_on import SIGN_IN_LIFETIME, SignInFailed, SingleSignOn, is_local_path

_API_PATH: Final = "/v1"
_NO_STORE: Final = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
log = structlog.get_logger(__name__)
router = create_router("/v1/sign_in", "sign_in", OpenRoute)


@router.get("", response_model=SignInMethods, openapi_extra=NO_AUTHENTICATION)
async def list_methods(request: Request) -> Response:
    """Lists the ways to sign in that this server offers."""
    read_query(request, NoParameters)
    sign_on = get_services(request).single_sign_on
    oidc: JsonObject | None = None if sign_on is None else {"name": sign_on.provider.name}
    return json_response({"type": "sign_in_methods", "api_key": True, "oidc": oidc})


@router.get("/oidc", status_code=303, openapi_extra=describe_request(query=StartOidcSignIn, needs_key=False))
async def start_oidc(request: Request) -> Response:
    """Redirects a browser to the identity provider. Afterwards it comes back to the path `return_to`."""
    query = read_query(request, StartOidcSignIn)
    sign_on = _get_single_sign_on(request)
    if not is_local_path(query.return_to) or query.return_to.startswith(_API_PATH):
        raise InvalidRequest(
            "return_to: must be the path of a page of this server, such as /sessions",
            field="return_to",
        )
    base_url = own_base_url(request)
    if urlsplit(base_url).netloc != request.headers.get("host", "").lower():
        # The provider sends the browser back to the public address, so the cookie has to be set there.
        return RedirectResponse(f"{base_url}{request.url.path}?{request.url.query}", 303)
    browser = describe_browser(request)
    try:
        state, browser_secret = await sign_on.store.begin(query.return_to, browser)
        url = await sign_on.provider.authorization_url(state, browser_secret)
    except FootplateError as error:
        return _redirect_to_error(request, error)
    response = RedirectResponse(url, 303, headers=_NO_STORE)
    name = _cookie_name(request, state)
    session_cookie.set_cookie(response, name, browser_secret, SIGN_IN_LIFETIME, same_site="Lax")
    return response


@router.get("/oidc/callback", status_code=303, openapi_extra=describe_request(query=OidcCallback, needs_key=False))
async def finish_oidc(request: Request) -> Response:
    """Receives the browser from the identity provider, and signs it in."""
    sign_on = _get_single_sign_on(request)
    browser = describe_browser(request)
    parameters = _single_parameters(request)
    state = parameters.get("state", "")
    cookie_name = _cookie_name(request, state)
    try:
        browser_secret = _read_browser_secret(request, cookie_name)
        returned = await sign_on.store.redeem(state, browser_secret)
        assert browser_secret is not None
        identity = await sign_on.provider.fetch_identity(parameters, state, browser_secret)
        _, secret = await sign_on.store.start_session(identity, browser)
    except FootplateError as error:
        if isinstance(error, SignInFailed):
            await _record_failure(sign_on, error, browser)
        response = _redirect_to_error(request, error)
    else:
        response = RedirectResponse(f"{own_base_url(request)}{returned.return_to}", 303, headers=_NO_STORE)
        session_cookie.set_session_cookie(request, response, secret, COOKIE_LIFETIME)
        await end_replaced_session(request)
    session_cookie.set_cookie(response, cookie_name, "", timedelta(0), same_site="Lax")
    return response


async def _record_failure(sign_on: SingleSignOn, error: SignInFailed, browser: Browser) -> None:
    try:
        await sign_on.store.check_failures(browser)
        await sign_on.store.record_failure(error.reason, browser)
    except FootplateError as failure:
        log.warning("failed sign-in was not recorded", action="sign_in.not_recorded", reason=failure.message)


def _get_single_sign_on(request: Request) -> SingleSignOn:
    sign_on = get_services(request).single_sign_on
    if sign_on is None:
        raise NotFound("identity provider", "oidc")
    return sign_on


def _single_parameters(request: Request) -> dict[str, str]:
    """Returns the parameters of the callback that occur once. One that occurs twice is ambiguous, and left out."""
    found: dict[str, list[str]] = {}
    for name, value in request.query_params.multi_items():
        found.setdefault(name, []).append(value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _read_browser_secret(request: Request, name: str) -> str | None:
    try:
        return session_cookie.read_cookie(request, name)
    except Unauthenticated:
        return None


def _cookie_name(request: Request, state: str) -> str:
    """Each sign-in has a cookie of its own, so that several tabs can sign in at the same time."""
    suffix = hashlib.sha256(state.encode()).hexdigest()[:16]
    return f"{'__Host-' if is_served_by_https(request) else ''}footplate-oidc-{suffix}"


def _redirect_to_error(request: Request, error: FootplateError) -> Response:
    reason = error.reason if isinstance(error, SignInFailed) else error.code
    if not isinstance(error, Refused):
        log.warning("sign-in failed", action="sign_in.failed", reason=error.message)
    return RedirectResponse(f"{own_base_url(request)}/sign-in?error={reason}", 303, headers=_NO_STORE)
