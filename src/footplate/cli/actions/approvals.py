"""Implements the commands `footplate approvals`, `approve` and `deny`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import typer

from footplate.cli.connection import run_with_client
from footplate.cli.follow import approval_prompt, input_editor
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import resource_tables, terminal_io
from footplate.cli.render.terminal_io import Exit, print_json
from footplate.client import Approval, AsyncFootplate, Event

_KEYS: Final = "y allows it, n leaves it pending. To deny it, run `footplate deny {id}`."


def list_approvals(session: str | None, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Approval]:
        listed = [approval async for approval in client.approvals.list(limit=100, session_id=session)]
        if as_json:
            return listed
        return [
            each if each.display is None or each.display.whole else await client.approvals.retrieve(each.id)
            for each in listed
        ]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([approval.wire() for approval in found])
    else:
        resource_tables.print_approvals(found)


def approve(
    ids: Sequence[str],
    *,
    rule: str | None,
    updated: str | None,
    edited: bool,
    confirm: bool,
    as_json: bool,
    profile: str | None,
) -> None:
    """Shows each call in full and allows it. With `confirm`, the user at the terminal confirms each call first."""
    if confirm and not approval_prompt.can_ask():
        raise typer.BadParameter("Approval needs confirmation. Without a terminal, use --yes.")
    new_input = None if updated is None else _parse_json_object(updated)
    if new_input is not None and len(ids) > 1:
        raise typer.BadParameter("can only be used with a single ID", param_hint="--input")

    if new_input is not None and edited:
        raise typer.BadParameter("cannot be combined with --input", param_hint="--edited")

    async def allow(client: AsyncFootplate, approval: Approval) -> Event | None:
        updated_input = choose_edit(approval) if edited else new_input
        if approval.status == "pending":
            if updated_input is None and approval.edited_input is not None and not as_json:
                editor = terminal_io.quote(approval.edited_by or "Another person")
                terminal_io.err().print(
                    f"[yellow]{editor} edited the input of this call.[/] "
                    f"To see and approve the edited input, run `footplate approve --edited {approval.id}`."
                )
            if confirm:
                title = f" ({terminal_io.quote(approval.session_title)})" if approval.session_title else ""
                terminal_io.err().print(f"[dim]Session {approval.session_id}{title}[/]")
                decision = await approval_prompt.ask_decision(
                    approval, updated_input=updated_input, help_text=_KEYS.format(id=approval.id)
                )
                if decision is None or decision.result != "allow":
                    return None
            elif not as_json:
                _print_call(approval, updated_input)
        return await client.approvals.allow(approval, updated_input=updated_input, session_rule=rule)

    _decide_all(ids, allow, as_json=as_json, profile=profile)


def choose_edit(approval: Approval) -> dict[str, Any]:
    """Returns the input that another person edited. With `two_people`, editors cannot approve their own edits."""
    if approval.edited_input is None:
        raise typer.BadParameter(
            f"{approval.id} has no edited input; run the command without --edited", param_hint="--edited"
        )
    return approval.edited_input


def deny(ids: Sequence[str], *, message: str | None, as_json: bool, profile: str | None) -> None:
    async def refuse(client: AsyncFootplate, approval: Approval) -> Event | None:
        if approval.status == "pending" and not as_json:
            _print_call(approval)
        return await client.approvals.deny(approval, message)

    _decide_all(ids, refuse, as_json=as_json, profile=profile)


def _decide_all(
    ids: Sequence[str],
    decide: Callable[[AsyncFootplate, Approval], Awaitable[Event | None]],
    *,
    as_json: bool,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Approval]:
        """Looks up every id before it sends a decision, so an unknown id fails the command without any effect."""
        found = [await client.approvals.retrieve(event_id) for event_id in ids]
        for approval in found:
            await decide(client, approval)
        return [await client.approvals.retrieve(event_id) for event_id in ids]

    decided = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([approval.wire() for approval in decided])
    else:
        for approval in decided:
            terminal_io.print_result(f"{approval.id} {approval.status}")
    if any(approval.status == "pending" for approval in decided):
        raise typer.Exit(Exit.NEEDS_ACTION)


def _print_call(approval: Approval, updated_input: Mapping[str, Any] | None = None) -> None:
    for line in approval_prompt.render_call(approval, updated_input):
        terminal_io.print_exactly(terminal_io.err(), line)


def _parse_json_object(text: str) -> dict[str, Any]:
    try:
        return input_editor.parse_input(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--input") from None
