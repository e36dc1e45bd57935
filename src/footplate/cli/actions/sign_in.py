"""Implements `footplate login`, `logout`, `whoami` and `dashboard`."""

import asyncio
import os
import platform
import webbrowser
from dataclasses import replace
from typing import Final

import typer

from footplate.cli.connection import disable_retry_logs, fail_with_client_error, run_with_client
from footplate.cli.json_output_models import DashboardLink, SignedIn, SignedOut
from footplate.cli.profile import server_profiles
from footplate.cli.profile.server_profiles import LOCAL_PROFILE, NoServerSelected, ProfileConfig, Server
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import Exit, quote
from footplate.client import AsyncFootplate, ClientError, DeviceKey, Forbidden, NotFound, Principal, Unauthenticated
from footplate.client.members import DeviceSignIn

_DEFAULT_PROFILE: Final = "default"


def sign_in(base_url: str | None, *, as_json: bool, profile: str | None) -> None:
    config = _load_config()
    name = _profile_name(config, profile)
    fields = dict(config.profiles.get(name, {}))
    # The environment may name another server, whose address must not replace that of the profile.
    address = base_url or fields.get("base_url") or os.environ.get("FOOTPLATE_BASE_URL")
    if not address:
        terminal_io.print_error(
            f"The profile {name!r} has no server.", "Name its address: footplate login https://footplate.example.com"
        )
        raise typer.Exit(Exit.FAILED)
    disable_retry_logs()
    try:
        key = asyncio.run(_sign_in(address))
    except ClientError as error:
        fail_with_client_error(error, Server(address, "", "the command"), as_json=as_json)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(Exit.DETACHED) from None
    fields.update(base_url=address.rstrip("/"), api_key=key.api_key)
    server_profiles.save_config(
        replace(config, current=config.current or name, profiles={**config.profiles, name: fields})
    )
    if as_json:
        result = SignedIn(
            profile=name,
            base_url=fields["base_url"],
            member_id=key.member_id,
            member_name=key.member_name,
            api_key_id=key.api_key_id,
            expires_at=key.expires_at,
        )
        terminal_io.print_json(result.model_dump(mode="json"))
    else:
        terminal_io.print_note(
            f"You are signed in as {quote(key.member_name)} until {key.expires_at:%Y-%m-%d}. The key is in the profile "
            f"{quote(name)}."
        )
        if config.current not in {None, name}:
            terminal_io.print_note(f"Use it with --profile {quote(name)}, or select it: footplate config use {name}")


async def _sign_in(address: str) -> DeviceKey:
    device = DeviceSignIn(address)
    try:
        started = await device.start(f"footplate login on {platform.node() or 'an unnamed machine'}"[:100])
        console = terminal_io.err()
        console.print(f"Open this address in your browser and sign in:\n\n  {quote(started.verification_uri_complete)}")
        console.print(f"\nApprove only if it shows this code:  [bold]{quote(started.user_code)}[/]\n")
        console.print(f"Waiting for you, at most {started.expires_in // 60} minutes …")
        return await device.wait_for_key(started)
    finally:
        await device.aclose()


def sign_out(*, as_json: bool, profile: str | None) -> None:
    config = _load_config()
    name = _profile_name(config, profile)
    fields = dict(config.profiles.get(name, {}))
    api_key, address = fields.pop("api_key", None), fields.get("base_url")
    if not api_key:
        terminal_io.print_error(f"The profile {name!r} has no API key.", "You are not signed in there.")
        raise typer.Exit(Exit.FAILED)
    if not address:
        terminal_io.print_error(
            f"The profile {name!r} has an API key, but no server.",
            f"Set its address, then run the command again: footplate config set base_url URL --profile {name}",
        )
        raise typer.Exit(Exit.FAILED)

    async def work(client: AsyncFootplate, _server: Server) -> bool:
        try:
            await client.sign_in.revoke_own_key()
        except Unauthenticated:
            return False  # it has ended already
        return True

    # With the key of the profile, also if FOOTPLATE_API_KEY has another one.
    server = Server(address, api_key, f"the profile {name!r}")
    was_valid = run_with_client(work, as_json=as_json, server=server)
    server_profiles.save_config(replace(config, profiles={**config.profiles, name: fields}))
    if as_json:
        terminal_io.print_json(SignedOut(profile=name, revoked=was_valid).model_dump())
    else:
        how = "The key is revoked" if was_valid else "The key had already ended, and is"
        terminal_io.print_note(f"You are signed out. {how} and removed from the profile {quote(name)}.")


def show_principal(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, server: Server) -> tuple[Principal, Server]:
        return await client.sign_in.retrieve_principal(), server

    principal, server = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(principal.wire())
        return
    lines = {
        "Name": principal.name,
        "ID": principal.id,
        "Email": principal.email,
        "Roles": ", ".join(principal.roles) or "none",
        "Teams": ", ".join(team.name for team in principal.teams),
        "Projects": ", ".join(principal.project_ids or ()),
        "Organisation": principal.organisation_id,
        "Server": f"{server.base_url} ({server.source})",
        "Expires": None if principal.expires_at is None else f"{principal.expires_at:%Y-%m-%d %H:%M} UTC",
    }
    for label, value in lines.items():
        if value:
            terminal_io.print_result(f"{label:<13} {value}")


def open_dashboard(*, opens: bool, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, server: Server) -> DashboardLink:
        try:
            link = await client.sign_in.create_link()
        except (Forbidden, NotFound):  # the server is on another machine
            return DashboardLink(url=f"{server.base_url.rstrip('/')}/", signs_in=False)
        return DashboardLink(url=link.url, signs_in=True)

    link = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(link.model_dump())
    elif not opens or not _has_browser() or not webbrowser.open(link.url):
        terminal_io.print_machine_text(link.url)
    else:
        terminal_io.print_note("The dashboard opens in your browser.")


def _has_browser() -> bool:
    """Whether a window can be opened. A browser in the terminal would take the terminal over."""
    return os.name == "nt" or platform.system() == "Darwin" or bool(os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"})


def _load_config() -> ProfileConfig:
    try:
        return server_profiles.load_config()
    except NoServerSelected as error:
        terminal_io.print_error(str(error))
        raise typer.Exit(Exit.FAILED) from None


def _profile_name(config: ProfileConfig, given: str | None) -> str:
    name = given or os.environ.get("FOOTPLATE_PROFILE") or config.current or _DEFAULT_PROFILE
    if name == LOCAL_PROFILE:
        raise typer.BadParameter(
            f"The profile `{LOCAL_PROFILE}` is the `footplate dev` on this machine, which needs no sign-in. Choose "
            "another profile with --profile."
        )
    return name
