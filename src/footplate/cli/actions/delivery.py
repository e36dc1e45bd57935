"""Implements `footplate apply`, `merge`, `push` and `export`, which deliver a session's work."""

import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from footplate.cli.actions import diff
from footplate.cli.actions.apply_to_checkout import UserCheckout
from footplate.cli.actions.checkout_match import CheckoutMatcher
from footplate.cli.actions.run import session_start
from footplate.cli.connection import run_with_client
from footplate.cli.json_output_models import Applied, Exported
from footplate.cli.profile.server_profiles import Server
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import print_json, quote
from footplate.client import AsyncFootplate, ClientError, DeliveryResult, Diff

_CHUNK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOptions:
    session: str
    turn: str | None = None
    project: str | None = None


def apply(options: DeliveryOptions, directory: Path, *, as_json: bool, profile: str | None) -> None:
    async def work(client: AsyncFootplate, server: Server) -> Applied:
        matcher = await CheckoutMatcher.create(client, server, UserCheckout.find(directory))
        session, checkout = await matcher.find_session(client, options.session), matcher.checkout
        with tempfile.TemporaryDirectory(prefix="footplate-") as temp_dir:
            file = Path(temp_dir, "patch")
            found = await _save_patch(client, session.id, options, file)
            matcher.check_base(session, found.trees[0].project_id)
            deleted = [change.path for change in found.trees[0].files if change.status == "deleted"]
            changed = checkout.apply_patch(file, deleted)
        return Applied(
            session_id=session.id,
            title=session.title,
            status="applied" if changed else "unchanged",
            directory=str(checkout.root),
            files=len(found.trees[0].files),
        )

    done = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(done.model_dump(mode="json"))
        return
    terminal_io.err().print(f"[dim]Session {done.session_id}: {quote(done.title or 'without a title')}[/]")
    if done.status == "unchanged":
        terminal_io.err().print("Nothing to do: your checkout already has all changes.", markup=False)
    else:
        files = "1 file" if done.files == 1 else f"{done.files} files"
        terminal_io.err().print(f"Changed {files} in {quote(done.directory)}. Nothing was staged or committed.")


def merge(
    options: DeliveryOptions, into: str | None, *, message: str | None, wait: int, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, session_id: str) -> DeliveryResult:
        return await client.sessions.merge(
            session_id, into=into, project_id=options.project, message=message, wait_seconds=wait
        )

    _print_delivery(_deliver(options, work, as_json=as_json, profile=profile), as_json=as_json)


def push(
    options: DeliveryOptions, branch: str | None, *, message: str | None, wait: int, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, session_id: str) -> DeliveryResult:
        return await client.sessions.push(
            session_id, branch=branch, project_id=options.project, message=message, wait_seconds=wait
        )

    _print_delivery(_deliver(options, work, as_json=as_json, profile=profile), as_json=as_json)


def export_patch(options: DeliveryOptions, file: Path, *, as_json: bool, profile: str | None) -> None:
    path = str(file.absolute())

    async def work(client: AsyncFootplate, _server: Server) -> Exported:
        session_id = await session_start.resolve_session_id(client, options.session)
        with _atomic_file(file) as partial_file:
            await _save_patch(client, session_id, options, partial_file)
        return Exported(session_id=session_id, patch=path)

    done = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(done.model_dump(mode="json"))
    else:
        terminal_io.print_result(path)


def print_patch(options: DeliveryOptions, *, profile: str | None) -> None:
    """Prints the patch only once it is complete, because the reader of a pipe cannot tell a part from the whole."""
    with tempfile.TemporaryDirectory(prefix="footplate-") as temp_dir:
        file = Path(temp_dir, "patch")

        async def work(client: AsyncFootplate, _server: Server) -> None:
            await _save_patch(client, await session_start.resolve_session_id(client, options.session), options, file)

        run_with_client(work, profile=profile)
        with file.open("rb") as patch:
            writer = terminal_io.ContentWriter()
            while (piece := patch.read(_CHUNK_BYTES)) and writer.write(piece):
                pass
            writer.finish()


def export_branch(
    options: DeliveryOptions, branch: str, directory: Path, *, force: bool, as_json: bool, profile: str | None
) -> None:
    async def work(client: AsyncFootplate, server: Server) -> Exported:
        matcher = await CheckoutMatcher.create(client, server, UserCheckout.find(directory))
        session_id = (await matcher.find_session(client, options.session)).id
        with tempfile.TemporaryDirectory(prefix="footplate-") as temp_dir:
            file = Path(temp_dir, "bundle")
            await _save_chunks(client.sessions.bundle(session_id, project_id=options.project), file)
            commit = matcher.checkout.import_bundle(file, branch, force=force)
        return Exported(session_id=session_id, branch=branch, commit=commit)

    done = run_with_client(work, profile=profile, as_json=as_json)
    if as_json:
        print_json(done.model_dump(mode="json"))
    else:
        terminal_io.print_result(f"{done.branch} {done.commit}")


def _deliver(
    options: DeliveryOptions,
    work: Callable[[AsyncFootplate, str], Awaitable[DeliveryResult]],
    *,
    as_json: bool,
    profile: str | None,
) -> DeliveryResult:
    async def deliver(client: AsyncFootplate, _server: Server) -> DeliveryResult:
        return await work(client, await session_start.resolve_session_id(client, options.session))

    return run_with_client(deliver, profile=profile, as_json=as_json)


def _print_delivery(delivery: DeliveryResult, *, as_json: bool) -> None:
    if as_json:
        print_json(delivery.wire())
        return
    phrases = {
        "merged": "Merged into",
        "fast_forwarded": "Merged into",
        "pushed": "Pushed as",
        "unchanged": "Nothing to do: all changes are already in",
    }
    if delivery.status == "fast_forwarded" and delivery.before is None:
        terminal_io.err().print(f"Created the branch {quote(delivery.branch)} at {delivery.commit[:12]}.")
        return
    how = " (fast-forward)" if delivery.status == "fast_forwarded" else ""
    terminal_io.err().print(f"{phrases[delivery.status]} {quote(delivery.branch)}, now at {delivery.commit[:12]}{how}.")


async def _save_patch(client: AsyncFootplate, session_id: str, options: DeliveryOptions, file: Path) -> Diff:
    """Saves the patch of the one changed project to a file and returns its diff. A checkout belongs to one project."""
    query = await diff.build_diff_query(client, session_id, turn=options.turn, project=options.project)
    found = await client.sessions.diff(session_id, **query)
    changed = [tree for tree in found.trees if tree.files]
    if (directory := await diff.find_user_directory(client, session_id, found)) is not None:
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
    pieces = client.sessions.patch(session_id, **{**query, "project_id": changed[0].project_id})
    await _save_chunks(pieces, file)
    return found.model_copy(update={"trees": changed})


async def _save_chunks(chunks: AsyncIterator[bytes], file: Path) -> None:
    async with aclosing(cast("Any", chunks)) as arriving:
        with file.open("wb") as written:
            async for piece in arriving:
                written.write(piece)


@contextmanager
def _atomic_file(file: Path) -> Iterator[Path]:
    """Yields a temporary file that replaces `file` on success and is removed on failure."""
    partial_file = file.with_name(f".{file.name}.part")
    try:
        yield partial_file
        partial_file.replace(file)
    except OSError as error:
        raise ClientError(
            f"{file} cannot be written: {error.strerror}.",
            help_text="Choose a file in an existing directory that you can write to.",
        ) from None
    finally:
        with suppress(OSError):
            partial_file.unlink(missing_ok=True)
