"""One way to talk to the server for every command: find it, do the work, show an error so that it helps."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn, TypeVar

import stamina.instrumentation
import typer

from footplate.cli import output, profiles
from footplate.cli.answers import ConflictAnswer, ConflictDetail, ErrorAnswer, ErrorDetail
from footplate.cli.output import Exit, print_json_line
from footplate.cli.profiles import NoServer, Server
from footplate.client import ApiError, AsyncFootplate, ClientError, StreamLost, Unauthenticated, Unreachable

T = TypeVar("T")
PATIENCE: Final = 180.0
"""A server that was there and is gone: somebody may be starting it again."""


def talk(
    work: Callable[[AsyncFootplate, Server], Awaitable[T]], *, profile: str | None = None, as_json: bool = False
) -> T:
    # Retries are told by the views, in words for people.
    stamina.instrumentation.set_on_retry_hooks([])
    server: Server | None = None
    try:
        server = profiles.server(profile)
        return asyncio.run(_with_client(work, server))
    except NoServer as error:
        _fail(ErrorDetail(code="no_server", title="Which server?", message=str(error), help=""), as_json=as_json)
    except ClientError as error:
        assert server is not None
        detail = _detail(error, _help(error, server))
        code = Exit.UNREACHABLE if isinstance(error, Unreachable | StreamLost) else Exit.FAILED
        _fail(detail, code, as_json=as_json)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(Exit.LEFT) from None


async def _with_client(work: Callable[[AsyncFootplate, Server], Awaitable[T]], server: Server) -> T:
    async with AsyncFootplate(server.base_url, server.api_key, patience=PATIENCE) as client:
        return await work(client, server)


def _fail(detail: ErrorDetail, code: Exit = Exit.UNREACHABLE, *, as_json: bool) -> NoReturn:
    if as_json:
        told = ConflictAnswer if isinstance(detail, ConflictDetail) else ErrorAnswer
        print_json_line(told.model_validate({"error": detail, "exit_code": code}).model_dump(mode="json"))
    else:
        output.complain(detail.message, detail.help)
    raise typer.Exit(code) from None


def _detail(error: ClientError, help_text: str) -> ErrorDetail:
    told = {"code": error.code, "title": error.title, "message": error.message, "help": help_text}
    if isinstance(error, ApiError) and error.conflicts:
        return ConflictDetail(**told, conflicts=error.conflicts)
    return ErrorDetail(**told)


def _help(error: ClientError, server: Server) -> str:
    if isinstance(error, Unreachable):
        return (
            f"That address comes from {server.source}. Is it running? `footplate dev` starts a server on this machine; "
            "`footplate config list` shows the servers that you know."
        )
    if isinstance(error, Unauthenticated):
        return (
            f"The key comes from {server.source}. "
            "`footplate api-keys create` makes one where the server runs; `footplate config set api_key` keeps it."
        )
    return error.help
