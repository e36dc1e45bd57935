"""`footplate agents` and `footplate environments`. What they need they import when they are called."""

from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.grouping import Grouped

agents = typer.Typer(help="Agents: which model, which prompt, which tools.", no_args_is_help=True, cls=Grouped)
environments = typer.Typer(help="Environments: where an agent's commands run.", no_args_is_help=True, cls=Grouped)

AgentId = Annotated[str, typer.Argument(metavar="AGENT", help="An agent's id.")]
EnvironmentId = Annotated[str, typer.Argument(metavar="ENVIRONMENT", help="An environment's id.")]


@agents.command("ls")
def list_agents(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List agents, newest first."""
    from footplate.cli import managing

    managing.list_agents(as_json=as_json, profile=profile)


@agents.command("show")
def show_agent(agent: AgentId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Show an agent: the newest version of its model, prompt, tools and limits."""
    from footplate.cli import managing

    managing.show_agent(agent, as_json=as_json, profile=profile)


@agents.command("create")
def create_agent(
    name: Annotated[str, typer.Option(metavar="NAME", help="Its name; `run --agent` takes it too.")],
    model: Annotated[
        str, typer.Option("--model", "-m", metavar="NAME", help="Such as claude-sonnet-5 or openai:gpt-5.1.")
    ],
    system: Annotated[str | None, typer.Option(metavar="TEXT", help="Its system prompt.")] = None,
    max_turns: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Ask the model at most so many times a turn.")
    ] = None,
    tools: Annotated[bool, typer.Option(help="With the built-in tools: bash, read, write, edit, glob, grep.")] = True,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Create an agent and print its id."""
    from footplate.cli import managing

    managing.create_agent(
        name, model, system=system, max_turns=max_turns, tools=tools, as_json=as_json, profile=profile
    )


@agents.command("archive")
def archive_agent(agent: AgentId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Archive an agent: its sessions go on, new ones cannot use it."""
    from footplate.cli import managing

    managing.archive_agent(agent, as_json=as_json, profile=profile)


@environments.command("ls")
def list_environments(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List environments, newest first."""
    from footplate.cli import managing

    managing.list_environments(as_json=as_json, profile=profile)


@environments.command("show")
def show_environment(
    environment: EnvironmentId, as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """Show an environment: what it is for and how it is made."""
    from footplate.cli import managing

    managing.show_environment(environment, as_json=as_json, profile=profile)


@environments.command("create")
def create_environment(
    name: Annotated[str, typer.Option(metavar="NAME", help="Its name, which no other environment has.")],
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is for.")] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Create an environment of the kind that the server's operator offers, and print its id."""
    from footplate.cli import managing

    managing.create_environment(name, description=description, as_json=as_json, profile=profile)


@environments.command("rm")
def remove_environment(
    environment: EnvironmentId, as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """Delete an environment that no session uses."""
    from footplate.cli import managing

    managing.remove_environment(environment, as_json=as_json, profile=profile)
