"""Implements `footplate projects`, and finds or creates the projects of `run --project`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from footplate.cli.actions.project_directory import ProjectDirectory
from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import resource_tables, terminal_io
from footplate.cli.render.terminal_io import print_json, quote
from footplate.client import AsyncFootplate, ClientError, Conflict, Project

_MAX_NAMED_FILES: Final = 5


def list_projects(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, server: Server) -> list[Project]:
        found = [project async for project in client.projects.list(limit=100)]
        return found if as_json else [with_local_path(server, project) for project in found]

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
    location: str,
    *,
    name: str | None,
    branch: str | None,
    trust: str,
    setup: str | None = None,
    cached_directories: Sequence[str] | None = None,
    as_json: bool,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, server: Server) -> Project:
        where = {"url": location} if _is_url(location) else {"path": _server_path(server, location)}
        cached = None if cached_directories is None else [*cached_directories]
        return await client.projects.create(
            name=name, branch=branch, trust=trust, setup=setup, cached_directories=cached, **where
        )

    _print_id(run_with_client(work, profile=profile, as_json=as_json), as_json=as_json)


def choose_cached_directories(names: Sequence[str] | None, *, no_cache: bool) -> Sequence[str] | None:
    """Returns the directories to cache. None: those of the default."""
    if no_cache and names:
        raise ClientError("--cache and --no-cache contradict each other.", help_text="Use one of them.")
    return [] if no_cache else names or None


def change_setup(
    project_id: str,
    command: str | None,
    *,
    remove: bool,
    cached_directories: Sequence[str] | None,
    as_json: bool,
    profile: str | None,
) -> None:
    if remove == (command is not None) and (remove or cached_directories is None):
        raise ClientError(
            "The new setup is missing." if command is None else "--remove and a command contradict each other.",
            help_text="Pass a command, --remove, --cache or --no-cache.",
        )
    fields: dict[str, Any] = {"setup": command} if command is not None or remove else {}
    if cached_directories is not None:
        fields["cached_directories"] = [*cached_directories]
    _print_id(
        run_with_client(
            lambda client, _: client.projects.update(project_id, **fields), profile=profile, as_json=as_json
        ),
        as_json=as_json,
    )


def with_local_path(server: Server, project: Project) -> Project:
    """Returns the project with its absolute path, if it is on this machine. `footplate dev` allows all directories."""
    path = Path("/", project.path or "")
    if not (project.path and server.is_local and path.is_dir()):
        return project
    return project.model_copy(update={"path": str(path)})


def archive_project(project_id: str, *, as_json: bool, profile: str | None) -> None:
    _print_id(
        run_with_client(lambda client, _: client.projects.archive(project_id), profile=profile, as_json=as_json),
        as_json=as_json,
    )


@dataclass(frozen=True, slots=True)
class SelectedProjects:
    """The projects of a new session, and the fields of its context that belong to them."""

    ids: Sequence[str] = ()
    context: Mapping[str, Any] = field(default_factory=dict)


async def select_projects(
    client: AsyncFootplate, server: Server, wanted: Sequence[str], *, include_uncommitted: bool
) -> SelectedProjects:
    """Selects the projects of a new session. Each argument is an id, a name, or a path for which a project is created
    on first use. All paths on this machine are checked before a project is created.
    """
    named = {each: found for each in wanted if (found := await _find_named_project(client, server, each)) is not None}
    directories = {
        each: ProjectDirectory.find(each) for each in wanted if server.is_local and _is_path(each) and each not in named
    }
    if include_uncommitted and len(directories) < len(wanted):
        raise ClientError(
            "--include-uncommitted requires a `footplate dev` on this machine and a --project that is a path.",
            help_text="Omit it. The session then starts from the last commit.",
        )
    ids = {each: named.get(each) or await _resolve_project_id(client, each, directories.get(each)) for each in wanted}
    commits: dict[str, str] = {}
    for each, directory in directories.items():
        if not (uncommitted := directory.list_uncommitted()):
            continue
        if include_uncommitted:
            commits[ids[each]] = directory.commit_uncommitted()
        else:
            _warn_of_uncommitted(uncommitted)
    context: dict[str, Any] = {"base_commits": commits} if commits else {}
    first = directories.get(wanted[0]) if wanted else None
    if first is not None and first.subdirectory:
        if first.has_subdirectory(commits.get(ids[wanted[0]], "HEAD")):
            context["subdirectory"] = first.subdirectory
        else:
            terminal_io.err().print(
                f"{quote(first.subdirectory)} has no committed files, so the session starts in the top directory of "
                f"{quote(str(first.repository))}."
            )
    return SelectedProjects([*dict.fromkeys(ids.values())], context)


def _warn_of_uncommitted(files: Sequence[str]) -> None:
    count = "1 uncommitted file is" if len(files) == 1 else f"{len(files)} uncommitted files are"
    names = ", ".join(map(quote, files[:_MAX_NAMED_FILES])) + (", …" if len(files) > _MAX_NAMED_FILES else "")
    terminal_io.err().print(
        f"[yellow]{count} not in the session: {names}. Commit them first, or use --include-uncommitted.[/]"
    )


async def _find_named_project(client: AsyncFootplate, server: Server, wanted: str) -> str | None:
    """Returns the id of the project with this name. A path is not taken for a name."""
    if not _may_be_name(wanted, server):
        return None
    found = [project.id async for project in client.projects.list(limit=100) if project.name == wanted]
    if not server.is_local and found:
        found += [project.id for project in (await client.projects.list(path=wanted, limit=1).page()).data]
    if len({*found}) > 1:
        raise ClientError(
            f"{quote(wanted)} is the name of one project and the path of another.",
            help_text="Pass the ID of a project. `footplate projects ls` lists them.",
        )
    return found[0] if found else None


async def _resolve_project_id(client: AsyncFootplate, wanted: str, directory: ProjectDirectory | None) -> str:
    if wanted.startswith("proj_"):
        return wanted
    if _is_url(wanted):
        raise ClientError(
            f"{wanted} is a URL. --project accepts only a path or a project ID.",
            help_text=f"Create a project, then pass its ID: footplate projects create {wanted}",
        )
    path = wanted if directory is None else str(directory.repository)
    for _ in range(2):
        found = (await client.projects.list(path=path, limit=1).page()).data
        if found:
            return found[0].id
        try:
            return (await client.projects.create(path=path)).id
        except Conflict as error:  # created concurrently, or the name is taken
            conflict = error
    raise ClientError(
        conflict.message, help_text=f"Create it under another name: footplate projects create {path} --name …"
    )


def _server_path(server: Server, given: str) -> str:
    """Returns the path of a new project on its server. The path on a remote server stays as written."""
    if not server.is_local:
        return given
    found = ProjectDirectory.find(given)
    if found.subdirectory:
        raise ClientError(
            f"{found.repository / found.subdirectory} is a directory of the repository {found.repository}.",
            help_text=f"Create a project for the repository: footplate projects create {found.repository}",
        )
    return str(found.repository)


def _may_be_name(text: str, server: Server) -> bool:
    is_plain = _is_path(text) and "/" not in text and text not in {".", ".."}
    return is_plain and not (server.is_local and Path(text).exists())


def _is_path(text: str) -> bool:
    return not text.startswith("proj_") and not _is_url(text)


def _is_url(text: str) -> bool:
    return "://" in text


def _print_id(project: Project, *, as_json: bool) -> None:
    if as_json:
        print_json(project.wire())
    else:
        terminal_io.print_result(project.id)
