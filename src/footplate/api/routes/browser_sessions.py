"""`/v1/browser_sessions`: signs browsers in and out, and lists where the caller is signed in.

Starting a session needs no API key in a header: the body has it, or a one-time code. The response sets the cookie.
"""

from contextlib import suppress
from datetime import timedelta
from typing import Final

from fastapi import Request
from starlette.responses import Response

from footplate.api.auth import Caller, extract_api_key, extract_secret
from footplate.api.openapi import describe_request
from footplate.api.requests import session_cookie
from footplate.api.requests.local_client import check_is_local
from footplate.api.requests.own_origin import check_own_origin
from footplate.api.requests.parsing import read_body, read_empty_body, read_query
from footplate.api.requests.session_cookie import read_session_cookie
from footplate.api.routes.me import NO_STORE
from footplate.api.routing import OpenRoute, create_router
from footplate.api.service_container import get_services
from footplate.api.wire import response_models, sign_in
from footplate.api.wire.agent_and_environment_queries import NoParameters
from footplate.api.wire.json_responses import json_response, list_response
from footplate.api.wire.sign_in import (
    BrowserSessionCreate,
    BrowserSessionResponse,
    EndedBrowserSession,
    OneTimeCode,
    PrincipalResponse,
)
from footplate.domain.errors import InvalidRequest, Unauthenticated
from footplate.domain.organisations.principals import Principal
from footplate.domain.organisations.sign_in import Browser, SignInMethod
from footplate.domain.organisations.single_sign_on import SignInFailed

CODE_SECONDS: Final = 60
COOKIE_LIFETIME: Final = timedelta(days=400)
"""The cookie outlives every session: the server decides when a session ends."""

router = create_router("/v1/browser_sessions", "sign_in")
open_router = create_router("/v1", "sign_in", OpenRoute)


@open_router.post(
    "/browser_sessions",
    response_model=PrincipalResponse,
    openapi_extra=describe_request(body=BrowserSessionCreate, needs_key=False),
)
async def start_session(request: Request) -> Response:
    """Signs a browser in, with an API key or a one-time code, and sets the cookie of its session."""
    body, _ = await read_body(request, BrowserSessionCreate)
    read_query(request, NoParameters)
    check_own_origin(request, required=True)
    sessions, browser = get_services(request).browser_sessions, describe_browser(request)
    if body.one_time_code is not None:
        check_is_local(request)
        principal, secret = await sessions.start_with_code(body.one_time_code, browser)
    else:
        assert body.api_key is not None
        principal, secret = await sessions.start_with_key(body.api_key.strip(), browser)
    response = await _respond_signed_in(request, principal, secret)
    await end_replaced_session(request)
    return response


@router.get("", response_model=response_models.Listing[BrowserSessionResponse])
async def list_sessions(request: Request, principal: Caller) -> Response:
    """Lists where the caller is signed in with a browser."""
    read_query(request, NoParameters)
    sessions = get_services(request).browser_sessions
    current = (await sessions.load_profile(principal, extract_secret(request))).session_id
    found = await sessions.list_sessions(principal)
    return list_response([sign_in.serialize_session(session, current) for session in found], next_page=None)


@router.delete("/current", response_model=EndedBrowserSession)
async def end_current_session(request: Request, principal: Caller) -> Response:
    """Signs out: ends the browser session of the request."""
    read_query(request, NoParameters)
    secret = extract_secret(request)
    sessions = get_services(request).browser_sessions
    profile = await sessions.load_profile(principal, secret)
    session_id = profile.session_id
    if session_id is None:
        raise InvalidRequest(
            "This request was authenticated by an API key, so there is no browser session to end.",
            help_text="Revoke the key with `footplate api-keys revoke`.",
        )
    await sessions.end_session_of(secret)
    sign_on = get_services(request).single_sign_on
    url = None
    if sign_on is not None and profile.method is SignInMethod.OIDC:
        with suppress(SignInFailed):  # the session has ended all the same
            url = await sign_on.provider.sign_out_url()
    response = json_response({"type": "browser_session_ended", "id": session_id, "sign_out_url": url})
    session_cookie.clear_session_cookies(request, response)
    return response


@router.delete("/{browser_session_id}", response_model=EndedBrowserSession)
async def end_session(request: Request, browser_session_id: str, principal: Caller) -> Response:
    """Ends a browser session of the caller. It stops working within 5 seconds on every replica."""
    read_query(request, NoParameters)
    await get_services(request).browser_sessions.end_session(principal, browser_session_id)
    return json_response({"type": "browser_session_ended", "id": browser_session_id, "sign_out_url": None})


@router.post("/one_time_codes", response_model=OneTimeCode)
async def create_code(request: Request, principal: Caller) -> Response:
    """Creates a code with which one browser on this machine can sign in once, within a minute, as the owner of the API
    key.
    """
    await read_empty_body(request)
    read_query(request, NoParameters)
    check_is_local(request)
    api_key = extract_api_key(request)
    if api_key is None:
        raise Unauthenticated("A browser session cannot create a one-time code.", help_text="Use an API key.")
    code = await get_services(request).browser_sessions.create_code(principal, api_key)
    url = f"http://{request.headers['host']}/sign-in?code={code}"
    return json_response(
        {"type": "one_time_code", "code": code, "url": url, "expires_in": CODE_SECONDS}, headers=NO_STORE
    )


async def _respond_signed_in(request: Request, principal: Principal, secret: str) -> Response:
    profile = await get_services(request).browser_sessions.load_profile(principal, secret)
    response = json_response(sign_in.serialize_principal(principal, profile, secret), headers=NO_STORE)
    session_cookie.set_session_cookie(request, response, secret, COOKIE_LIFETIME)
    return response


async def end_replaced_session(request: Request) -> None:
    """Ends the session whose cookie the response replaces."""
    try:
        replaced = read_session_cookie(request)
    except Unauthenticated:
        return
    if replaced is not None:
        await get_services(request).browser_sessions.end_session_of(replaced)


def describe_browser(request: Request) -> Browser:
    address = request.client.host if request.client is not None else ""
    return Browser.describe(address, request.headers.get("user-agent", ""))
