"""Implements `footplate projects`, and finds or creates the projects of `run --project`."""

from collections.abc import Sequence
from pathlib import Path

from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import resource_tables, terminal_io
from footplate.cli.render.terminal_io import print_json
from footplate.client import AsyncFootplate, ClientError, Conflict, Project


def list_projects(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Project]:
        return [project async for project in client.projects.list(limit=100)]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([project.wire() for project in found])
    else:
        resource_tables.print_projects(found)


def show_project(project_id: str, *, as_json: bool, profile: str | None) -> None:
    project = run_with_client(lambda client, _: client.projects.retrieve(project_id), profile=profile, as_json=as_json)
    if as_json:
        print_json(project.wire())
    else:
        resource_tables.print_project(project)


def create_project(
    location: str, *, name: str | None, branch: str | None, trust: str, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, server: Server) -> Project:
        where = {"url": location} if _is_url(location) else {"path": server_path(server, location)}
        return await client.projects.create(name=name, branch=branch, trust=trust, **where)

    _print_id(run_with_client(work, profile=profile, as_json=as_json), as_json=as_json)


def archive_project(project_id: str, *, as_json: bool, profile: str | None) -> None:
    _print_id(
        run_with_client(lambda client, _: client.projects.archive(project_id), profile=profile, as_json=as_json),
        as_json=as_json,
    )


async def resolve_project_ids(client: AsyncFootplate, server: Server, wanted: Sequence[str]) -> list[str] | None:
    """Returns project ids. Each argument is an id, or a path for which a project is created on first use."""
    return [await _resolve_project_id(client, server, each) for each in wanted] or None


async def _resolve_project_id(client: AsyncFootplate, server: Server, wanted: str) -> str:
    if wanted.startswith("proj_"):
        return wanted
    if _is_url(wanted):
        raise ClientError(
            f"{wanted} is a URL. --project accepts only a path or a project ID.",
            help_text=f"Create a project, then pass its ID: footplate projects create {wanted}",
        )
    path = server_path(server, wanted)
    for _ in range(2):
        found = (await client.projects.list(path=path, limit=1).page()).data
        if found:
            return found[0].id
        try:
            return (await client.projects.create(path=path)).id
        except Conflict as error:  # created concurrently, or the name is taken
            conflict = error
    raise ClientError(
        conflict.message, help_text=f"Create it under another name: footplate projects create {wanted} --name …"
    )


def server_path(server: Server, given: str) -> str:
    """Returns the path of a project on its server.

    For a local server, it must be an existing directory, because the server would create a misspelt one. For a remote
    server, it stays as written.
    """
    if not server.is_local:
        return given
    path = Path(given).resolve()
    if not path.is_dir():
        raise ClientError(
            f"{path} is not a directory.", help_text="Pass a git repository, or create the directory first."
        )
    return str(path)


def _is_url(text: str) -> bool:
    return "://" in text


def _print_id(project: Project, *, as_json: bool) -> None:
    if as_json:
        print_json(project.wire())
    else:
        terminal_io.print_result(project.id)
