"""Implements the delivery commands: apply, merge, push and export."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from footplate.cli import comparing, output, starting
from footplate.cli.answers import Applied, Exported
from footplate.cli.checkout import Checkout
from footplate.cli.connection import talk
from footplate.cli.output import print_json, quote
from footplate.cli.profiles import Server
from footplate.client import AsyncFootplate, ClientError, Diff, Left

_PIECE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    session: str
    turn: str | None = None
    project: str | None = None


def apply(wanted: Wanted, directory: Path, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Applied:
        checkout = Checkout.at(directory)
        session_id = await starting.session_id_of(client, wanted.session)
        with tempfile.TemporaryDirectory(prefix="footplate-") as place:
            file = Path(place, "patch")
            found = await _patch(client, session_id, wanted, file)
            deleted = [change.path for change in found.trees[0].files if change.status == "deleted"]
            changed = checkout.apply(file, deleted)
        return Applied(
            session_id=session_id,
            status="applied" if changed else "unchanged",
            directory=str(checkout.root),
            files=len(found.trees[0].files),
        )

    done = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(done.model_dump(mode="json"))
    elif done.status == "unchanged":
        output.err().print("Nothing to do: your checkout already has all changes.", markup=False)
    else:
        files = "1 file" if done.files == 1 else f"{done.files} files"
        output.err().print(f"Applied: {files}, in {quote(done.directory)}. Nothing is staged or committed.")


def merge(
    wanted: Wanted, into: str | None, *, message: str | None, wait: int, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, session_id: str) -> Left:
        return await client.sessions.merge(
            session_id, into=into, project_id=wanted.project, message=message, wait_seconds=wait
        )

    _show(_left(wanted, work, as_json=as_json, profile=profile), as_json=as_json)


def push(
    wanted: Wanted, branch: str | None, *, message: str | None, wait: int, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, session_id: str) -> Left:
        return await client.sessions.push(
            session_id, branch=branch, project_id=wanted.project, message=message, wait_seconds=wait
        )

    _show(_left(wanted, work, as_json=as_json, profile=profile), as_json=as_json)


def export_patch(wanted: Wanted, file: Path, *, as_json: bool, profile: str | None) -> None:
    place = str(file.absolute())

    async def work(client: AsyncFootplate, _server: Server) -> Exported:
        session_id = await starting.session_id_of(client, wanted.session)
        with _beside(file) as begun:
            await _patch(client, session_id, wanted, begun)
        return Exported(session_id=session_id, patch=place)

    done = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(done.model_dump(mode="json"))
    else:
        output.print_result(place)


def print_patch(wanted: Wanted, *, profile: str | None) -> None:
    """Prints the patch only once it is complete, because the reader of a pipe cannot tell a part from the whole."""
    with tempfile.TemporaryDirectory(prefix="footplate-") as place:
        file = Path(place, "patch")

        async def work(client: AsyncFootplate, _server: Server) -> None:
            await _patch(client, await starting.session_id_of(client, wanted.session), wanted, file)

        talk(work, profile=profile)
        with file.open("rb") as patch:
            writer = output.ContentWriter()
            while (piece := patch.read(_PIECE)) and writer.write(piece):
                pass
            writer.finish()


def export_branch(
    wanted: Wanted, branch: str, directory: Path, *, force: bool, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, _server: Server) -> Exported:
        checkout = Checkout.at(directory)
        session_id = await starting.session_id_of(client, wanted.session)
        with tempfile.TemporaryDirectory(prefix="footplate-") as place:
            file = Path(place, "bundle")
            await _save(client.sessions.bundle(session_id, project_id=wanted.project), file)
            commit = checkout.take(file, branch, force=force)
        return Exported(session_id=session_id, branch=branch, commit=commit)

    done = talk(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(done.model_dump(mode="json"))
    else:
        output.print_result(f"{done.branch} {done.commit}")


def _left(
    wanted: Wanted, work: Callable[[AsyncFootplate, str], Awaitable[Left]], *, as_json: bool, profile: str | None
) -> Left:
    async def asked(client: AsyncFootplate, _server: Server) -> Left:
        return await work(client, await starting.session_id_of(client, wanted.session))

    return talk(asked, profile=profile, as_json=as_json)


def _show(left: Left, *, as_json: bool) -> None:
    if as_json:
        print_json(left.wire())
        return
    said = {
        "merged": "Merged into",
        "fast_forwarded": "Merged into",
        "pushed": "Pushed as",
        "unchanged": "Nothing to do: all changes are in",
    }
    how = " (fast-forward)" if left.status == "fast_forwarded" else ""
    output.err().print(f"{said[left.status]} {quote(left.branch)}, now at {left.commit[:12]}{how}.")


async def _patch(client: AsyncFootplate, session_id: str, wanted: Wanted, file: Path) -> Diff:
    """Saves the patch of the one changed project to a file and returns its diff. A checkout belongs to one project."""
    which = await comparing.which(client, session_id, turn=wanted.turn, project=wanted.project)
    found = await client.sessions.diff(session_id, **which)
    changed = [tree for tree in found.trees if tree.files]
    if (directory := await comparing.yours(client, session_id, found)) is not None:
        raise ClientError(
            f"Session {session_id} works directly in {directory}, so its changes are already there.",
            help_text="There is nothing to export. `footplate run --project DIR` gives a session its own working tree.",
        )
    if not changed:
        raise ClientError(f"Session {session_id} has not changed any files.", help_text="There is nothing to export.")
    if len(changed) > 1:
        names = ", ".join(f"{tree.name} ({tree.project_id})" for tree in changed)
        raise ClientError(
            f"Session {session_id} has changed {len(changed)} projects: {names}.",
            help_text="Choose one with --project.",
        )
    pieces = client.sessions.patch(session_id, **{**which, "project_id": changed[0].project_id})
    await _save(pieces, file)
    return found.model_copy(update={"trees": changed})


async def _save(pieces: AsyncIterator[bytes], file: Path) -> None:
    async with aclosing(cast("Any", pieces)) as arriving:
        with file.open("wb") as written:
            async for piece in arriving:
                written.write(piece)


@contextmanager
def _beside(file: Path) -> Iterator[Path]:
    """Yields a temporary file that replaces `file` on success and is removed on failure."""
    begun = file.with_name(f".{file.name}.part")
    try:
        yield begun
        begun.replace(file)
    except OSError as error:
        raise ClientError(
            f"{file} cannot be written: {error.strerror}.",
            help_text="Choose a file in an existing directory that you can write to.",
        ) from None
    finally:
        with suppress(OSError):
            begun.unlink(missing_ok=True)
