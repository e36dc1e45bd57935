"""Defines `footplate agents` and `footplate environments`. Each command imports its implementation only when it runs,
so that every command starts quickly.
"""

from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

agents = typer.Typer(help="Manage agents: model, system prompt and tools.", no_args_is_help=True, cls=GroupedHelp)
environments = typer.Typer(
    help="Manage environments, where agents run their commands.", no_args_is_help=True, cls=GroupedHelp
)

AgentId = Annotated[str, typer.Argument(metavar="AGENT", help="ID of an agent.")]
EnvironmentId = Annotated[str, typer.Argument(metavar="ENVIRONMENT", help="ID of an environment.")]


@agents.command("ls")
def list_agents(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List agents, newest first."""
    from footplate.cli.actions import agents_and_environments

    agents_and_environments.list_agents(as_json=as_json, profile=profile)


@agents.command("show")
def show_agent(agent: AgentId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show the newest version of an agent: its model, prompt, tools and limits."""
    from footplate.cli.actions import agents_and_environments

    agents_and_environments.show_agent(agent, as_json=as_json, profile=profile)


@agents.command("create")
def create_agent(
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the agent. `run --agent` accepts it.")],
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="Model, such as claude-sonnet-5 or openai:gpt-5.1.")
    ],
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="System prompt.")] = None,
    max_turns: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Maximum number of model requests per turn.")
    ] = None,
    tools: Annotated[bool, typer.Option(help="Enable the built-in tools: bash, read, write, edit, glob, grep.")] = True,
    toolset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Enable a server-side toolset of an installed package; repeatable."),
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Create an agent and print its ID."""
    from footplate.cli.actions import agents_and_environments

    agents_and_environments.create_agent(
        name,
        model,
        system=system,
        max_turns=max_turns,
        tools=tools,
        toolsets=toolset or [],
        as_json=as_json,
        profile=profile,
    )


@agents.command("archive")
def archive_agent(agent: AgentId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Archive an agent. Its sessions continue, but new ones cannot use it."""
    from footplate.cli.actions import agents_and_environments

    agents_and_environments.archive_agent(agent, as_json=as_json, profile=profile)


@environments.command("ls")
def list_environments(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List environments, newest first."""
    from footplate.cli.actions import agents_and_environments

    agents_and_environments.list_environments(as_json=as_json, profile=profile)


@environments.command("show")
def show_environment(
    environment: EnvironmentId, as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """Show an environment: its description and configuration."""
    from footplate.cli.actions import agents_and_environments

    agents_and_environments.show_environment(environment, as_json=as_json, profile=profile)


@environments.command("create")
def create_environment(
    name: Annotated[str, typer.Option(metavar="NAME", help="Unique name of the environment.")],
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="Description.")] = None,
    backend: options.Backend = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Create an environment, and print its ID."""
    from footplate.cli.actions import agents_and_environments

    agents_and_environments.create_environment(
        name, description=description, backend=backend, as_json=as_json, profile=profile
    )


@environments.command("backends")
def list_backends(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List where commands can run, and how many running workers offer it."""
    from footplate.cli.actions import agents_and_environments

    agents_and_environments.list_backends(as_json=as_json, profile=profile)


@environments.command("rm")
def remove_environment(
    environment: EnvironmentId, as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """Delete an environment that no session uses."""
    from footplate.cli.actions import agents_and_environments

    agents_and_environments.remove_environment(environment, as_json=as_json, profile=profile)
