"""Implements `footplate diff`: prints a session's changes as a patch or as a summary with one line per file."""

from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, cast

from rich.text import Text

from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import patch_pager, terminal_io
from footplate.cli.render.terminal_io import print_json, quote
from footplate.client import AsyncFootplate, ClientError, Diff, StateChanges, TreeDiff
from footplate.domain.files.snapshots import CHANGE_STATES
from footplate.domain.text.visible_text import show_line

_SIGNS: Final = {"added": "A", "modified": "M", "deleted": "D", "renamed": "R", "type_changed": "T"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    session: str
    turn: str | None
    since: str | None
    until: str | None
    project: str | None
    state: str | None = None


def diff(options: DiffOptions, *, stat: bool, uses_pager: bool, as_json: bool, profile: str | None) -> None:
    patches: list[bytes] = []
    """For a terminal. They are shown after the connection is closed, because a user may read them for long."""

    async def work(client: AsyncFootplate, _server: Server) -> tuple[Diff, str | None]:
        session_id = await session_start.resolve_session_id(client, options.session)
        query = await build_diff_query(client, session_id, turn=options.turn, project=options.project)
        query |= {**_event_parameter("from", options.since), **_event_parameter("to", options.until)}
        found = await client.sessions.diff(session_id, **query)
        if not stat and not as_json:
            query["state"] = options.state
            await _print_patches(client, found, query, patches if terminal_io.is_terminal() else None)
        return found, await find_user_directory(client, session_id, found)

    found, directory = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(found.wire())
        return
    if directory is not None:
        terminal_io.err().print(
            f"There is no diff: the session works directly in your directory {quote(directory)}. Its changes are there."
        )
        return
    if patches:
        patch_pager.show_patch(b"".join(patches), uses_pager=uses_pager)
    trees = [(tree, _select_changes(tree, options.state)) for tree in found.trees]
    if stat and not any(changes.files for _, changes in trees):
        terminal_io.err().print("No changes.")
    for tree, changes in trees:
        if stat and changes.files:
            _print_summary(tree, changes, named=len(trees) > 1, with_states=options.state is None)
        for omitted_path in tree.left_out:
            terminal_io.err().print(f"[dim]Not compared: {quote(omitted_path)}[/]")


async def find_user_directory(client: AsyncFootplate, session_id: str, found: Diff) -> str | None:
    """Returns the user's directory that the session works in, if that is the reason for an empty diff."""
    if any(tree.files for tree in found.trees):
        return None
    directory = (await client.sessions.retrieve(session_id)).context.get("directory")
    return None if directory is None else str(directory)


async def build_diff_query(
    client: AsyncFootplate, session_id: str, *, turn: str | None, project: str | None
) -> dict[str, Any]:
    """Returns the query parameters for a turn and a project. The turn `last` is replaced by the newest turn's id."""
    if turn == "last":
        turn = None
        async for newest in client.turns.list(session_id, limit=1):
            turn = newest.id
            break
        if turn is None:
            raise ClientError(f"Session {session_id} has no turns yet.")
    return {"turn_id": turn, "project_id": project}


def _event_parameter(name: str, event: str | None) -> dict[str, Any]:
    if event is None:
        return {}
    return {f"{name}_position": int(event)} if event.isdecimal() else {f"{name}_event_id": event}


async def _print_patches(
    client: AsyncFootplate, found: Diff, query: dict[str, Any], patches: list[bytes] | None
) -> None:
    """Prints the patch of each changed project as exact bytes, or adds it to `patches`."""
    changed = [tree for tree in found.trees if _select_changes(tree, query["state"]).files]
    for tree in changed:
        if len(changed) > 1 and patches is not None:
            patches.append(f"# {tree.name} ({tree.project_id})\n".encode())
        elif len(changed) > 1:
            terminal_io.err().print(f"[dim]{quote(tree.name)} ({tree.project_id})[/]")
        writer = terminal_io.ContentWriter()
        pieces = client.sessions.patch(found.session_id, **{**query, "project_id": tree.project_id})
        async with aclosing(cast("Any", pieces)) as patch:
            async for piece in patch:
                if patches is not None:
                    patches.append(piece)
                elif not writer.write(piece):
                    return
        writer.finish()


def _select_changes(tree: TreeDiff, state: str | None) -> TreeDiff | StateChanges:
    """Returns the changes in one state, or all."""
    if state is None:
        return tree
    if tree.states is None:
        raise ClientError("The states of the session's changes are not known. Omit --state to see all changes.")
    found: StateChanges = getattr(tree.states, state)
    return found


def _print_summary(tree: TreeDiff, changes: TreeDiff | StateChanges, *, named: bool, with_states: bool) -> None:
    console = terminal_io.out()
    if named:
        console.print(f"[bold]{quote(tree.name)}[/]")
    for file in changes.files:
        counts = "binary" if file.binary else f"+{file.added} -{file.deleted}"
        path = show_line(file.path) if file.old_path is None else f"{show_line(file.old_path)} → {show_line(file.path)}"
        line = Text(f"{_SIGNS.get(file.status, '?')} {path}  ").append(counts, style="dim")
        terminal_io.print_exactly(console, line)
    console.print(f"{_count_files(changes)} changed, +{changes.added} -{changes.deleted}", style="dim", markup=False)
    if with_states and tree.states is not None:
        for state in CHANGE_STATES:
            found: StateChanges = getattr(tree.states, state)
            if found.files:
                text = f"  {state}: {_count_files(found)}, +{found.added} -{found.deleted}"
                console.print(text, style="dim", markup=False)


def _count_files(changes: TreeDiff | StateChanges) -> str:
    return "1 file" if len(changes.files) == 1 else f"{len(changes.files)} files"
