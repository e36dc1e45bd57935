"""Implements the approval commands: approvals, approve and deny."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import typer

from footplate.cli import output, prompting, tables
from footplate.cli.connection import talk
from footplate.cli.output import Exit, print_json
from footplate.cli.profiles import Server
from footplate.client import Approval, AsyncFootplate, Event

_QUESTION: Final = "Allow it? [y; any other input leaves it pending]"


def list_approvals(session: str | None, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Approval]:
        listed = [approval async for approval in client.approvals.list(limit=100, session_id=session)]
        if as_json:
            return listed
        return [
            each if each.display is None or each.display.whole else await client.approvals.retrieve(each.id)
            for each in listed
        ]

    found = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([approval.wire() for approval in found])
    else:
        tables.approvals(found)


def approve(
    ids: Sequence[str],
    *,
    rule: str | None,
    updated: str | None,
    edited: bool,
    ask: bool,
    as_json: bool,
    profile: str | None,
) -> None:
    """Shows each call in full and allows it. With `ask`, the user at the terminal confirms each call first."""
    changed = None if updated is None else _object(updated)
    if changed is not None and len(ids) > 1:
        raise typer.BadParameter("can only be used with a single ID", param_hint="--input")

    if changed is not None and edited:
        raise typer.BadParameter("cannot be combined with --input", param_hint="--edited")

    async def allow(client: AsyncFootplate, approval: Approval) -> Event | None:
        given = choose_edit(approval) if edited else changed
        if approval.status == "pending":
            if given is None and approval.edited_input is not None and not as_json:
                output.err().print(
                    f"[yellow]{output.quote(approval.edited_by or 'Another person')} edited the input of this call.[/] "
                    f"To see and approve the edited input, run `footplate approve --edited {approval.id}`."
                )
            if ask and prompting.can_ask():
                if await prompting.word(approval, given=given, question=_QUESTION) != "allow":
                    return None
            elif not as_json:
                _show(approval, given)
        return await client.approvals.allow(approval, updated_input=given, session_rule=rule)

    _answer(ids, allow, as_json=as_json, profile=profile)


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
            _show(approval)
        return await client.approvals.deny(approval, message)

    _answer(ids, refuse, as_json=as_json, profile=profile)


def _answer(
    ids: Sequence[str],
    say: Callable[[AsyncFootplate, Approval], Awaitable[Event | None]],
    *,
    as_json: bool,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Approval]:
        """Looks up every id before it sends a decision, so an unknown id fails the command without any effect."""
        found = [await client.approvals.retrieve(event_id) for event_id in ids]
        for approval in found:
            await say(client, approval)
        return [await client.approvals.retrieve(event_id) for event_id in ids]

    answered = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([approval.wire() for approval in answered])
    else:
        for approval in answered:
            output.print_result(f"{approval.id} {approval.status}")
    if any(approval.status == "pending" for approval in answered):
        raise typer.Exit(Exit.NEEDS_ACTION)


def _show(approval: Approval, given: Mapping[str, Any] | None = None) -> None:
    for line in prompting.show_call(approval, given):
        output.print_exactly(output.err(), line)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"is not valid JSON: {error}", param_hint="--input") from None
    if not isinstance(found, dict):
        raise typer.BadParameter("must be a JSON object", param_hint="--input")
    return found
