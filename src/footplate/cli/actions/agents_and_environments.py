"""Implements `footplate agents` and `footplate environments`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from footplate.cli import defaults
from footplate.cli.connection import run_with_client
from footplate.cli.render import resource_tables, terminal_io
from footplate.cli.render.terminal_io import print_json
from footplate.client import Agent, AsyncFootplate, Backend, Environment

T = TypeVar("T")


def list_agents(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate) -> list[Agent]:
        return [agent async for agent in client.agents.list(limit=100)]

    found = _request(work, profile, as_json=as_json)
    if as_json:
        print_json([agent.wire() for agent in found])
    else:
        resource_tables.print_agents(found)


def show_agent(agent_id: str, *, as_json: bool, profile: str | None) -> None:
    agent = _request(lambda client: client.agents.retrieve(agent_id), profile, as_json=as_json)
    if as_json:
        print_json(agent.wire())
    else:
        resource_tables.print_agent(agent)


def create_agent(
    name: str,
    model: str,
    *,
    system: str | None,
    max_turns: int | None,
    tools: bool,
    toolsets: Sequence[str],
    as_json: bool,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate) -> Agent:
        return await client.agents.create(
            name=name,
            model=model,
            system=system,
            tools=list(defaults.DEFAULT_TOOLS) if tools else None,
            limits={"max_iterations": max_turns} if max_turns else None,
            server_toolsets=[{"name": toolset} for toolset in toolsets] or None,
        )

    _print_id(_request(work, profile, as_json=as_json), as_json=as_json)


def archive_agent(agent_id: str, *, as_json: bool, profile: str | None) -> None:
    _print_id(_request(lambda client: client.agents.archive(agent_id), profile, as_json=as_json), as_json=as_json)


def list_environments(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate) -> list[Environment]:
        return [environment async for environment in client.environments.list(limit=100)]

    found = _request(work, profile, as_json=as_json)
    if as_json:
        print_json([environment.wire() for environment in found])
    else:
        resource_tables.print_environments(found)


def show_environment(environment_id: str, *, as_json: bool, profile: str | None) -> None:
    environment = _request(lambda client: client.environments.retrieve(environment_id), profile, as_json=as_json)
    if as_json:
        print_json(environment.wire())
    else:
        resource_tables.print_environment(environment)


def list_backends(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate) -> list[Backend]:
        return [backend async for backend in client.environments.backends()]

    found = _request(work, profile, as_json=as_json)
    if as_json:
        print_json([backend.wire() for backend in found])
    else:
        resource_tables.print_backends(found)


def create_environment(
    name: str, *, description: str | None, backend: str | None, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate) -> Environment:
        config = {"type": "cloud", **({"backend": backend} if backend else {})}
        return await client.environments.create(name=name, description=description, config=config)

    _print_id(_request(work, profile, as_json=as_json), as_json=as_json)


def remove_environment(environment_id: str, *, as_json: bool, profile: str | None) -> None:
    deleted = _request(lambda client: client.environments.delete(environment_id), profile, as_json=as_json)
    if as_json:
        print_json([deleted.wire()])
    else:
        terminal_io.print_result(deleted.id)


def _request(work: Callable[[AsyncFootplate], Awaitable[T]], profile: str | None, *, as_json: bool) -> T:
    return run_with_client(lambda client, _server: work(client), profile=profile, as_json=as_json)


def _print_id(resource: Agent | Environment, *, as_json: bool) -> None:
    if as_json:
        print_json(resource.wire())
    else:
        terminal_io.print_result(resource.id)
