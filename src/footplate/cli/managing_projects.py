"""What the commands for projects do, and how `run --project` finds one."""

from collections.abc import Sequence
from pathlib import Path

from footplate.cli import output, tables
from footplate.cli.connection import talk
from footplate.cli.output import print_json
from footplate.cli.profiles import Server
from footplate.client import AsyncFootplate, ClientError, Conflict, Project


def list_projects(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Project]:
        return [project async for project in client.projects.list(limit=100)]

    found = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([project.wire() for project in found])
    else:
        tables.projects(found)


def show_project(project_id: str, *, as_json: bool, profile: str | None) -> None:
    project = talk(lambda client, _: client.projects.retrieve(project_id), profile=profile, as_json=as_json)
    if as_json:
        print_json(project.wire())
    else:
        tables.project(project)


def create_project(
    place: str, *, name: str | None, branch: str | None, trust: str, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, server: Server) -> Project:
        where = {"url": place} if _is_url(place) else {"path": path_for(server, place)}
        return await client.projects.create(name=name, branch=branch, trust=trust, **where)

    _print(talk(work, profile=profile, as_json=as_json), as_json=as_json)


def archive_project(project_id: str, *, as_json: bool, profile: str | None) -> None:
    _print(
        talk(lambda client, _: client.projects.archive(project_id), profile=profile, as_json=as_json), as_json=as_json
    )


async def project_ids(client: AsyncFootplate, server: Server, wanted: Sequence[str]) -> list[str] | None:
    """Each is an id, or a path that becomes a project at its first use."""
    return [await _project_id(client, server, each) for each in wanted] or None


async def _project_id(client: AsyncFootplate, server: Server, wanted: str) -> str:
    if wanted.startswith("proj_"):
        return wanted
    if _is_url(wanted):
        raise ClientError(
            f"{wanted} is a URL, and may need a branch or a name.",
            help_text=f"Create a project of it, and use the id that is printed: footplate projects create {wanted}",
        )
    path = path_for(server, wanted)
    for _ in range(2):
        found = (await client.projects.list(path=path, limit=1).page()).data
        if found:
            return found[0].id
        try:
            return (await client.projects.create(path=path)).id
        except Conflict as error:  # somebody was quicker; or its name is another's
            conflict = error
    raise ClientError(
        conflict.message, help_text=f"Create it under another name: footplate projects create {wanted} --name …"
    )


def path_for(server: Server, given: str) -> str:
    """On this machine, the directory itself, which has to be there: a misspelt one would be made. Elsewhere, as it is
    written.
    """
    if not server.is_here:
        return given
    path = Path(given).resolve()
    if not path.is_dir():
        raise ClientError(f"{path} is no directory.", help_text="Name a git repository, or make the directory first.")
    return str(path)


def _is_url(text: str) -> bool:
    return "://" in text


def _print(project: Project, *, as_json: bool) -> None:
    if as_json:
        print_json(project.wire())
    else:
        output.print_result(project.id)
