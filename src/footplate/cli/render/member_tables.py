"""Prints tables of members, teams and API keys."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from footplate.cli.render import value_formatting
from footplate.cli.render.table_printing import Cell, UntrustedText, print_rows
from footplate.cli.render.terminal_io import print_note
from footplate.client import ApiKey, Member, Project, Team


def print_members(found: Sequence[Member]) -> None:
    if not found:
        print_note("No members. Add one: footplate members add NAME")
        return
    names = {each.id: each.name for each in found}
    rows: list[list[Cell]] = [
        [
            each.id,
            each.kind,
            "disabled" if each.disabled_at else "active",
            UntrustedText(", ".join(each.roles)),
            UntrustedText(f"{each.name} → {names[each.successor_id]}" if each.successor_id in names else each.name),
        ]
        for each in found
    ]
    print_rows(["ID", "KIND", "STATE", "ROLES", "NAME"], rows)
    if any(each.successor_id in names for each in found):
        print_note("→ marks the member who continues the work of a disabled one.")


def print_offboarding(member: Member) -> None:
    """Says what happened to the work of a member that was disabled."""
    print_note("Its API keys are revoked. Running turns go on to their end.")
    if member.successor_id is None:
        print_note(
            "Messages that it queued wait until you hand over its work: "
            f"footplate members disable {member.id} --hand-over-to MEMBER"
        )
    else:
        print_note(f"Its sessions, files and queued messages belong to {member.successor_id} now.")


def print_teams(found: Sequence[Team]) -> None:
    if not found:
        print_note("No teams. Create one: footplate teams create NAME --member MEMBER")
        return
    rows: list[list[Cell]] = [[each.id, str(len(each.member_ids)), UntrustedText(each.name)] for each in found]
    print_rows(["ID", "MEMBERS", "NAME"], rows)


def print_keys(found: Sequence[ApiKey], projects: Mapping[str, Project]) -> None:
    """Prints a table. It has a column for projects if a key is restricted to some."""
    if not found:
        print_note("No API keys.")
        return
    is_any_restricted = any(each.project_ids for each in found)
    rows: list[list[Cell]] = [
        [
            each.id,
            _key_state(each),
            value_formatting.format_age(each.last_used_at) if each.last_used_at else "never",
            UntrustedText(", ".join(each.roles)),
            UntrustedText(each.member_name),
            *([UntrustedText(_project_names(each, projects))] if is_any_restricted else []),
            UntrustedText(each.name),
        ]
        for each in found
    ]
    headings = ["ID", "STATE", "USED", "ROLES", "OWNER", *(["PROJECTS"] if is_any_restricted else []), "NAME"]
    print_rows(headings, rows)


def _project_names(key: ApiKey, projects: Mapping[str, Project]) -> str:
    names = [projects[each].name if each in projects else each for each in key.project_ids or []]
    return ", ".join(names) or "all"


def _key_state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is None:
        return "active"
    return "expired" if key.expires_at <= datetime.now(UTC) else f"until {key.expires_at:%Y-%m-%d}"
