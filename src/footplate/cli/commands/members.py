"""Defines `footplate members`, for the people and service accounts of an organisation, and `footplate teams`."""

from enum import StrEnum
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

members = typer.Typer(
    help="Manage people and service accounts. Requires the role `admin`.", no_args_is_help=True, cls=GroupedHelp
)
teams = typer.Typer(
    help="Manage teams. A session can be visible to one team. Changes require the role `admin`.",
    no_args_is_help=True,
    cls=GroupedHelp,
)


class MemberKind(StrEnum):
    PERSON = "person"
    SERVICE = "service"


Member = Annotated[str, typer.Argument(metavar="MEMBER", help="ID or name of a member.")]
ManyMembers = Annotated[list[str], typer.Argument(metavar="MEMBER…", help="IDs or names of members.")]
Team = Annotated[str, typer.Argument(metavar="TEAM", help="ID or name of a team.")]
RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="`viewer`, `operator`, `approver`, `member` (operator and approver), `policy_admin`, `admin`, or a role "
        "of your own. May be repeated.",
    ),
]


@members.command("ls")
def list_members(
    include_disabled: Annotated[bool, typer.Option("--all", "-a", help="Include disabled members.")] = False,
    team: Annotated[str | None, typer.Option(metavar="TEAM", help="Only members of this team (ID or name).")] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List members, newest first."""
    from footplate.cli.actions import members as actions

    actions.list_members(include_disabled=include_disabled, team=team, as_json=as_json, profile=profile)


@members.command("add")
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name, shown in the audit trail.")],
    role: RoleOption = None,
    kind: Annotated[MemberKind, typer.Option(help="A person or a service account.")] = MemberKind.PERSON,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Add a member, with the role `member` by default. Create a key for it with `footplate api-keys create`."""
    from footplate.cli.actions import members as actions

    actions.add_member(name, kind=kind, roles=role or ["member"], as_json=as_json, profile=profile)


@members.command("roles")
def set_roles(
    member: Member, role: RoleOption = None, as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """Replace the roles of a member. Its keys have at most these roles within 5 seconds."""
    from footplate.cli.actions import members as actions

    if not role:
        raise typer.BadParameter("Name at least one role.", param_hint="--role")
    actions.set_roles(member, roles=role, as_json=as_json, profile=profile)


@members.command("disable")
def disable(
    member: Member,
    hand_over_to: Annotated[
        str | None,
        typer.Option(
            metavar="MEMBER", help="Give its sessions, files and queued messages to this member (ID or name)."
        ),
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Disable a member and revoke its API keys, within 5 seconds. Running turns go on to their end.

    Without --hand-over-to, queued messages of the member wait, and only administrators see its private sessions. To
    hand over its work later, run the command again with --hand-over-to.
    """
    from footplate.cli.actions import members as actions

    actions.disable_member(member, successor=hand_over_to, as_json=as_json, profile=profile)


@members.command("enable")
def enable(member: Member, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Enable a disabled member. Its API keys stay revoked: create a new one with `footplate api-keys create`."""
    from footplate.cli.actions import members as actions

    actions.enable_member(member, as_json=as_json, profile=profile)


@teams.command("ls")
def list_teams(as_json: options.Json = False, profile: options.Profile = None) -> None:
    """List teams, newest first. `footplate members ls --team TEAM` lists the members of one."""
    from footplate.cli.actions import members as actions

    actions.list_teams(as_json=as_json, profile=profile)


@teams.command("create")
def create_team(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the team.")],
    member: Annotated[
        list[str] | None, typer.Option(metavar="MEMBER", help="ID or name of a member. May be repeated.")
    ] = None,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """Create a team and print its ID."""
    from footplate.cli.actions import members as actions

    actions.create_team(name, members=member or [], as_json=as_json, profile=profile)


@teams.command("add-member")
def add_members(
    team: Team, members: ManyMembers, as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """Add members to a team. They see its sessions and files within 5 seconds."""
    from footplate.cli.actions import members as actions

    actions.update_team(team, add=members, as_json=as_json, profile=profile)


@teams.command("remove-member")
def remove_members(
    team: Team, members: ManyMembers, as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """Remove members from a team. Within 5 seconds they see only what they own or what others can see too."""
    from footplate.cli.actions import members as actions

    actions.update_team(team, remove=members, as_json=as_json, profile=profile)
