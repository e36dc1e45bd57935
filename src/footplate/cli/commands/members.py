"""Defines `footplate members`: lists, adds, changes and disables the people and service accounts of an organisation."""

from enum import StrEnum
from typing import Annotated

import typer

from footplate.cli import options
from footplate.cli.commands.help_formatter import GroupedHelp

members = typer.Typer(
    help="Manage people and service accounts. Requires the role `admin`.", no_args_is_help=True, cls=GroupedHelp
)


class MemberKind(StrEnum):
    PERSON = "person"
    SERVICE = "service"


MemberId = Annotated[str, typer.Argument(metavar="MEMBER", help="ID of a member.")]
RoleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--role",
        help="`viewer`, `operator`, `approver`, `member` (operator and approver), `policy_admin`, `admin`, or a role "
        "of your own. May be repeated.",
    ),
]


@members.command("ls")
def list_members(
    include_disabled: Annotated[bool, typer.Option("--all", "-a", help="Include disabled members.")] = False,
    as_json: options.Json = False,
    profile: options.Profile = None,
) -> None:
    """List members, newest first."""
    from footplate.cli.actions import members as actions

    actions.list_members(include_disabled=include_disabled, as_json=as_json, profile=profile)


@members.command("add")
def add(
    name: Annotated[str, typer.Argument(help="Name, shown in the audit trail.")],
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
    member: MemberId, role: RoleOption = None, as_json: options.Json = False, profile: options.Profile = None
) -> None:
    """Replace the roles of a member. Its keys have at most these roles within 5 seconds."""
    from footplate.cli.actions import members as actions

    if not role:
        raise typer.BadParameter("Name at least one role.", param_hint="--role")
    actions.update_member(member, roles=role, as_json=as_json, profile=profile)


@members.command("disable")
def disable(member: MemberId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Disable a member. Its keys stop working within 5 seconds."""
    from footplate.cli.actions import members as actions

    actions.update_member(member, disabled=True, as_json=as_json, profile=profile)


@members.command("enable")
def enable(member: MemberId, as_json: options.Json = False, profile: options.Profile = None) -> None:
    """Enable a disabled member. Keys that were not revoked work again."""
    from footplate.cli.actions import members as actions

    actions.update_member(member, disabled=False, as_json=as_json, profile=profile)
