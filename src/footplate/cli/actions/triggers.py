"""Implements `footplate triggers`: creates, shows and changes triggers, and sends signed deliveries to them."""

import json
import os
import sys
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer

from footplate.cli.actions import projects as project_actions
from footplate.cli.actions.members import find_member_name, resolve_audience
from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.pipeline_file.pipeline_parser import InvalidPipeline, load_pipeline
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import terminal_io, trigger_views, value_formatting
from footplate.cli.render.terminal_io import Exit
from footplate.client import AsyncFootplate, ClientError, Conflict, Trigger, TriggerDelivery, Unauthenticated
from footplate.client.pagination import drop_none
from footplate.domain import ids

SECRET_VARIABLE: Final = "FOOTPLATE_TRIGGER_SECRET"  # noqa: S105 - the name of a variable
_PAGE: Final = 100
_OPTIONS: Final = {
    "condition": "--if",
    "title": "--title",
    "max_per_minute": "--max-per-minute",
    "name": "--name",
    "description": "--description",
}
"""The options for the fields of a trigger."""


class WrongSecret(ClientError):
    """The server has refused the signature of a delivery. The caller's API key is not the cause."""

    def __init__(self, error: Unauthenticated) -> None:
        super().__init__(
            error.message,
            help_text=f"Set {SECRET_VARIABLE} to the current secret of the trigger. "
            "`footplate triggers rotate TRIGGER` replaces a secret that is lost.",
        )
        self.code, self.title = error.code, error.title


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerOptions:
    name: str | None
    prompt: str | None
    shell: tuple[str, ...]
    steps_file: Path | None
    condition: str | None
    title: str | None
    max_per_minute: int | None
    description: str | None

    def load_steps(self) -> list[dict[str, Any]] | None:
        """Returns the steps of the options. Raises `typer.BadParameter` for a file that is not valid."""
        if self.steps_file is not None:
            try:
                return load_pipeline(self.steps_file, with_payload=True).to_wire()
            except InvalidPipeline as error:
                raise typer.BadParameter(str(error)) from None
        steps: list[dict[str, Any]] = [] if self.prompt is None else [{"kind": "prompt", "content": self.prompt}]
        return [*steps, *({"kind": "shell", "command": command} for command in self.shell)] or None

    def to_fields(self) -> dict[str, Any]:
        return drop_none(
            steps=self.load_steps(),
            condition=self.condition,
            title=self.title,
            max_per_minute=self.max_per_minute,
            description=self.description,
        )


def create_trigger(
    request: session_start.RunRequest,
    wanted: TriggerOptions,
    *,
    session: str | None,
    as_json: bool,
    profile: str | None,
) -> None:
    fields = wanted.to_fields()
    text = wanted.prompt or " && ".join(wanted.shell) or str(wanted.steps_file)
    fields["name"] = wanted.name or value_formatting.title_from_prompt(text)

    address = ""

    async def work(client: AsyncFootplate, server: Server) -> Trigger:
        nonlocal address
        address = _address(client, "")
        audience: dict[str, Any] = {**await resolve_audience(client, request.visibility, request.team)}
        if session is not None:
            return await client.triggers.create(session_id=session, **fields, **audience)
        selected = await project_actions.select_projects(client, server, request.projects, include_uncommitted=False)

        async def create(harness: str | None) -> Trigger:
            agent, environment_id = await session_start.choose_agent_and_environment(client, server, request, harness)
            return await client.triggers.create(
                agent=agent,
                environment_id=environment_id,
                project_ids=selected.ids or None,
                context=selected.context or None,
                ends_when_done=request.end_when_done,
                **fields,
                **audience,
            )

        return await session_start.retry_with_fresh_ids(
            client, lambda: session_start.create_with_default_harness(server, request, create)
        )

    created = run_with_client(work, profile=profile, as_json=as_json, options=_OPTIONS)
    if not as_json:
        terminal_io.err().print(f"Send deliveries to {address}{created.id}")
    _print_secret(created, as_json=as_json)


def list_triggers(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Trigger]:
        return [one async for one in client.triggers.list(limit=_PAGE)]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([one.wire() for one in found])
    else:
        trigger_views.print_triggers(found)


def show_trigger(trigger: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> tuple[Trigger, str, str]:
        found = await _resolve(client, trigger)
        name = "" if as_json else await find_member_name(client, found.runs_as)
        return found, _address(client, found.id), name

    found, address, member = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(found.wire())
    else:
        trigger_views.print_trigger(found, address, member)


def update_trigger(
    trigger: str,
    wanted: TriggerOptions,
    *,
    removes_condition: bool,
    paused: bool | None,
    as_json: bool,
    profile: str | None,
) -> None:
    fields = {**wanted.to_fields(), **drop_none(name=wanted.name, paused=paused)}
    if removes_condition:
        fields["condition"] = None
    if not fields:
        raise typer.BadParameter("There is nothing to change. Use at least one option.")
    _change(trigger, lambda client, found: client.triggers.update(found.id, **fields), as_json=as_json, profile=profile)


def remove_trigger(trigger: str, *, as_json: bool, profile: str | None) -> None:
    _change(trigger, lambda client, found: client.triggers.archive(found.id), as_json=as_json, profile=profile)


def rotate_secret(trigger: str, *, overlap_seconds: int, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Trigger:
        found = await _resolve(client, trigger)
        return await client.triggers.rotate_secret(found.id, overlap_seconds=overlap_seconds)

    _print_secret(run_with_client(work, profile=profile, as_json=as_json), as_json=as_json)


def send_delivery(trigger: str, payload: str, *, delivery_id: str | None, as_json: bool, profile: str | None) -> None:
    sent = _parse_payload(sys.stdin.read() if payload == "-" else payload)
    secret = os.environ.get(SECRET_VARIABLE) or terminal_io.prompt_value("Secret of the trigger", hidden=True)
    sent_id = delivery_id or f"msg_{uuid.uuid4().hex}"

    async def work(client: AsyncFootplate, _server: Server) -> TriggerDelivery:
        found = await _resolve(client, trigger)
        try:
            return await client.triggers.send(found.id, sent, secret=secret, delivery_id=sent_id)
        except Unauthenticated as error:
            raise WrongSecret(error) from None
        except Conflict:
            # The response to a sender has no reason. The log has it, and this caller may read it.
            failed = await client.triggers.deliveries(found.id, limit=_PAGE, outcome="failed").page()
            for one in failed.data:
                if one.delivery_id == sent_id:
                    return one
            raise

    delivery = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json(delivery.wire())
    elif delivery.error is not None:
        terminal_io.print_error("The delivery could not start anything.", delivery.error.message)
    elif delivery.session_id is None:
        terminal_io.print_result("ignored, because the condition of the trigger is false")
    else:
        terminal_io.print_result(delivery.session_id)
        terminal_io.print_note(f"Watch it with: footplate attach {delivery.session_id}")
    if delivery.outcome == "failed":
        raise typer.Exit(Exit.FAILED)


def list_deliveries(trigger: str, *, outcome: str | None, limit: int, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[TriggerDelivery]:
        found: list[TriggerDelivery] = []
        trigger_id = (await _resolve(client, trigger)).id
        async for one in client.triggers.deliveries(trigger_id, limit=min(limit, _PAGE), outcome=outcome):
            found.append(one)
            if len(found) == limit:
                break
        return found

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([delivery.wire() for delivery in found])
    else:
        trigger_views.print_deliveries(found)


def _parse_payload(text: str) -> dict[str, Any]:
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"The payload is not valid JSON: {error}.") from None
    if not isinstance(payload, dict):
        raise typer.BadParameter('The payload must be a JSON object, such as {"branch": "main"}.')
    return payload


def _change(
    trigger: str,
    change: Callable[[AsyncFootplate, Trigger], Awaitable[Trigger]],
    *,
    as_json: bool,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Trigger:
        return await change(client, await _resolve(client, trigger))

    changed = run_with_client(work, profile=profile, as_json=as_json, options=_OPTIONS)
    if as_json:
        terminal_io.print_json(changed.wire())
    else:
        terminal_io.print_result(changed.id)
        terminal_io.print_note(trigger_views.describe_state(changed))


def _print_secret(trigger: Trigger, *, as_json: bool) -> None:
    if as_json:
        terminal_io.print_json(trigger.wire())
        return
    terminal_io.err().print(f"Trigger {trigger.id}. Save its secret now. It is not shown again.")
    terminal_io.print_result(trigger.secret or "")


def _address(client: AsyncFootplate, trigger_id: str) -> str:
    return f"{client.base_url}/v1/triggers/{trigger_id}"


async def _resolve(client: AsyncFootplate, wanted: str) -> Trigger:
    """Finds a trigger by its ID or its name."""
    if wanted.startswith(f"{ids.TRIGGER}_"):
        return await client.triggers.retrieve(wanted)
    async for one in client.triggers.list(limit=_PAGE):
        if one.name == wanted:
            return one
    raise ClientError(f"No trigger is named {wanted!r}.", help_text="`footplate triggers ls` lists them.")
