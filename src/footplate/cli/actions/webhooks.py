"""Implements `footplate webhooks`."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

import typer

from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import terminal_io, webhook_tables
from footplate.cli.render.terminal_io import Exit
from footplate.client import AsyncFootplate, WebhookDelivery, WebhookEndpoint

_TEST_SECONDS: Final = 20.0
_CHECK_SECONDS: Final = 0.3


def list_endpoints(*, session: str | None, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[WebhookEndpoint]:
        return [each async for each in client.webhooks.list(limit=100, session_id=session)]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([endpoint.wire() for endpoint in found])
    else:
        webhook_tables.print_endpoints(found)


def create_endpoint(
    url: str,
    *,
    session: str | None,
    types: Sequence[str],
    description: str | None,
    webhook_format: str,
    ordered: bool,
    as_json: bool,
    profile: str | None,
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> WebhookEndpoint:
        return await client.webhooks.create(
            url,
            session_id=session,
            event_types=types,
            description=description,
            format=cast("Literal['standard', 'slack']", webhook_format),
            ordered=ordered,
        )

    _print_secret(run_with_client(work, profile=profile, as_json=as_json), as_json=as_json)


def show_endpoint(endpoint_id: str, *, as_json: bool, profile: str | None) -> None:
    found = run_with_client(lambda client, _: client.webhooks.retrieve(endpoint_id), profile=profile, as_json=as_json)
    _print_endpoint(found, as_json=as_json)


def update_endpoint(endpoint_id: str, fields: Mapping[str, Any], *, as_json: bool, profile: str | None) -> None:
    found = run_with_client(
        lambda client, _: client.webhooks.update(endpoint_id, **fields), profile=profile, as_json=as_json
    )
    _print_endpoint(found, as_json=as_json)


def delete_endpoint(endpoint_id: str, *, as_json: bool, profile: str | None) -> None:
    found = run_with_client(lambda client, _: client.webhooks.delete(endpoint_id), profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([found.wire()])
    else:
        terminal_io.print_result(f"{found.id} deleted")


def rotate_secret(endpoint_id: str, *, overlap_seconds: int, as_json: bool, profile: str | None) -> None:
    found = run_with_client(
        lambda client, _: client.webhooks.rotate_secret(endpoint_id, overlap_seconds=overlap_seconds),
        profile=profile,
        as_json=as_json,
    )
    _print_secret(found, as_json=as_json)


def test_endpoint(endpoint_id: str, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> WebhookDelivery:
        delivery = await client.webhooks.test(endpoint_id)
        deadline = time.monotonic() + _TEST_SECONDS
        while not delivery.attempts and time.monotonic() < deadline:
            await asyncio.sleep(_CHECK_SECONDS)
            delivery = await client.webhooks.delivery(endpoint_id, delivery.id)
        return delivery

    delivery = run_with_client(work, profile=profile, as_json=as_json)
    _print_delivery(delivery, as_json=as_json)
    if delivery.attempts and delivery.status != "delivered":
        raise typer.Exit(Exit.FAILED)


def list_deliveries(endpoint_id: str, *, status: str | None, limit: int, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[WebhookDelivery]:
        found: list[WebhookDelivery] = []
        async for each in client.webhooks.deliveries(endpoint_id, limit=min(limit, 100), status=status):
            found.append(each)
            if len(found) == limit:
                break
        return found

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        terminal_io.print_json([delivery.wire() for delivery in found])
    else:
        webhook_tables.print_deliveries(found)


def replay_delivery(endpoint_id: str, delivery_id: str, *, as_json: bool, profile: str | None) -> None:
    found = run_with_client(
        lambda client, _: client.webhooks.replay(endpoint_id, delivery_id), profile=profile, as_json=as_json
    )
    _print_delivery(found, as_json=as_json)


def _print_endpoint(endpoint: WebhookEndpoint, *, as_json: bool) -> None:
    if as_json:
        terminal_io.print_json(endpoint.wire())
    else:
        webhook_tables.print_endpoint(endpoint)


def _print_secret(endpoint: WebhookEndpoint, *, as_json: bool) -> None:
    if as_json:
        terminal_io.print_json(endpoint.wire())
        return
    terminal_io.err().print(f"Endpoint {endpoint.id}. Save its secret now. It is not shown again.")
    terminal_io.print_result(endpoint.secret or "")


def _print_delivery(delivery: WebhookDelivery, *, as_json: bool) -> None:
    if as_json:
        terminal_io.print_json(delivery.wire())
    else:
        webhook_tables.print_deliveries([delivery])
