"""Implements `footplate templates`."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import typer

from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import inbox_views, terminal_io
from footplate.client import AsyncFootplate, ClientError, SessionTemplate
from footplate.client.pagination import drop_none

_ID_PREFIX: Final = "stpl_"


def list_templates(*, include_archived: bool, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[SessionTemplate]:
        pages = client.session_templates.list(limit=100, include_archived=include_archived)
        return [template async for template in pages]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([template.wire() for template in found])
    else:
        inbox_views.print_templates(found)


def show(wanted: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> SessionTemplate:
        return await client.session_templates.retrieve(await resolve_template(client, wanted))

    _print_template(run_with_client(work, profile=profile, as_json=as_json), as_json=as_json)


def create(name: str, session: Path, *, description: str | None, as_json: bool, profile: str | None) -> None:
    body = read_session(session)

    async def work(client: AsyncFootplate, _server: Server) -> SessionTemplate:
        return await client.session_templates.create(name=name, session=body, description=description)

    _print_template(run_with_client(work, profile=profile, as_json=as_json), as_json=as_json)


def update(
    wanted: str,
    *,
    name: str | None,
    session: Path | None,
    description: str | None,
    as_json: bool,
    profile: str | None,
) -> None:
    fields = drop_none(name=name, description=description, session=None if session is None else read_session(session))

    async def work(client: AsyncFootplate, _server: Server) -> SessionTemplate:
        return await client.session_templates.update(await resolve_template(client, wanted), **fields)

    _print_template(run_with_client(work, profile=profile, as_json=as_json), as_json=as_json)


def archive(wanted: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> SessionTemplate:
        return await client.session_templates.archive(await resolve_template(client, wanted))

    archived = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(archived.wire())
    else:
        terminal_io.print_result(f"{archived.id} archived")


async def resolve_template(client: AsyncFootplate, wanted: str) -> str:
    if wanted.startswith(_ID_PREFIX):
        return wanted
    async for template in client.session_templates.list(limit=100):  # names are unique
        if template.name == wanted:
            return template.id
    raise ClientError(
        f"There is no template named {wanted!r}.", help_text="`footplate templates ls` lists the templates."
    )


def read_session(path: Path) -> dict[str, Any]:
    try:
        body = json.loads(sys.stdin.read() if str(path) == "-" else path.read_text())
    except OSError as error:
        raise typer.BadParameter(f"cannot read {path}: {error.strerror}", param_hint="--session") from None
    except ValueError as error:
        raise typer.BadParameter(f"{path} is not valid JSON: {error}", param_hint="--session") from None
    if not isinstance(body, dict):
        raise typer.BadParameter(f"{path} must contain a JSON object", param_hint="--session")
    return body


def _print_template(template: SessionTemplate, *, as_json: bool) -> None:
    if as_json:
        terminal_io.print_json(template.wire())
    else:
        inbox_views.print_template(template)
