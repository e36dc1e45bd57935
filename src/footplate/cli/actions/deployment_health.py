"""Implements `footplate workers`, `footplate queues` and `footplate versions`."""

from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import value_formatting
from footplate.cli.render.table_printing import Cell, UntrustedText, print_details, print_rows
from footplate.cli.render.terminal_io import print_json, print_note
from footplate.client import AsyncFootplate
from footplate.client.response_models import TaskQueue, Worker


def list_workers(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[Worker]:
        return [worker async for worker in client.health.workers()]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([worker.wire() for worker in found])
        return
    if not found:
        print_note("No worker is running. Start one: footplate worker")
        return
    rows: list[list[Cell]] = [
        [
            each.id,
            "running" if each.state == "running" else "[red]lost[/]",
            f"{each.running_turns}/{each.max_turns}" if each.max_turns is not None else str(each.running_turns),
            UntrustedText(", ".join(each.backends)),
            UntrustedText(each.version or "older"),
            value_formatting.format_age(each.started_at),
            UntrustedText(each.host),
        ]
        for each in found
    ]
    print_rows(["ID", "STATE", "TURNS", "BACKENDS", "VERSION", "AGE", "HOST"], rows)


def list_queues(*, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> list[TaskQueue]:
        return [queue async for queue in client.health.queues()]

    found = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json([queue.wire() for queue in found])
        return
    rows: list[list[Cell]] = [
        [
            UntrustedText(each.name),
            each.kind,
            str(each.backlog),
            value_formatting.format_seconds(each.oldest_seconds) if each.backlog else "",
            f"{each.added_per_second:.1f}/{each.taken_per_second:.1f}",
            str(each.pollers),
        ]
        for each in found
    ]
    print_rows(["QUEUE", "KIND", "WAITING", "OLDEST", "IN/OUT PER S", "POLLERS"], rows)


def show_versions(*, as_json: bool, profile: str | None) -> None:
    found = run_with_client(lambda client, _: client.health.versions(), profile=profile, as_json=as_json)
    if as_json:
        print_json(found.wire())
        return
    workers = ", ".join(f"{each.version or 'older'} ({each.workers})" for each in found.workers)
    print_details(
        {
            "server": found.footplate,
            "workers": UntrustedText(workers or "none is running"),
            "schema": found.schema_revision,
            "python": found.python,
            "postgresql": found.postgresql,
            "temporal": UntrustedText(found.temporal or "does not respond"),
        }
    )
