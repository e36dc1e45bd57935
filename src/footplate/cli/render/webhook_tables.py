"""Prints webhook endpoints, and the deliveries to them."""

from collections.abc import Sequence
from datetime import UTC, datetime

from footplate.cli.render import value_formatting
from footplate.cli.render.table_printing import Cell, UntrustedText, print_details, print_rows
from footplate.cli.render.terminal_io import print_note
from footplate.client import WebhookDelivery, WebhookEndpoint


def print_endpoints(found: Sequence[WebhookEndpoint]) -> None:
    if not found:
        print_note("No webhook endpoints. Create one: footplate webhooks create URL")
        return
    rows: list[list[Cell]] = [
        [each.id, _state(each), each.format, "one" if each.session_id else "all", UntrustedText(each.url)]
        for each in found
    ]
    print_rows(["ID", "STATE", "FORMAT", "SESSIONS", "URL"], rows)


def print_endpoint(endpoint: WebhookEndpoint) -> None:
    print_details(
        {
            "id": endpoint.id,
            "url": UntrustedText(endpoint.url),
            "description": UntrustedText(endpoint.description or ""),
            "state": _state(endpoint),
            "reason": UntrustedText(endpoint.disabled_reason or ""),
            "events": UntrustedText(", ".join(endpoint.event_types) or "all"),
            "sessions": endpoint.session_id or "all",
            "format": endpoint.format,
            "order": "in the order of each session" if endpoint.ordered else "any",
            "old_secret": f"valid until {endpoint.old_secret_expires_at:%Y-%m-%d %H:%M} UTC"
            if endpoint.old_secret_expires_at and endpoint.old_secret_expires_at > datetime.now(UTC)
            else "",
        }
    )


def print_deliveries(found: Sequence[WebhookDelivery]) -> None:
    if not found:
        print_note("No deliveries.")
        return
    rows: list[list[Cell]] = [
        [
            each.id,
            each.status,
            str(each.attempts),
            value_formatting.format_age(each.created_at),
            each.event_type,
            UntrustedText(_result(each)),
        ]
        for each in found
    ]
    print_rows(["ID", "STATUS", "ATTEMPTS", "AGE", "EVENT", "LAST RESULT"], rows)


def _state(endpoint: WebhookEndpoint) -> str:
    if endpoint.disabled_at is not None:
        return "disabled"
    return "failing" if endpoint.failing_since is not None else "enabled"


def _result(delivery: WebhookDelivery) -> str:
    text = delivery.last_error or (str(delivery.last_status_code) if delivery.last_status_code else "")
    if delivery.next_attempt_at is None or not delivery.attempts:
        return text
    wait = max(0.0, (delivery.next_attempt_at - datetime.now(UTC)).total_seconds())
    return f"{text} Next attempt in {value_formatting.format_seconds(wait)}."
