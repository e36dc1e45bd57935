"""Connects a command to its server: finds the server, runs the command's work with a client and reports errors."""

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
"""Seconds to retry a server that went away, because it may be restarting."""


def talk(
    work: Callable[[AsyncFootplate, Server], Awaitable[T]], *, profile: str | None = None, as_json: bool = False
) -> T:
    # The views report retries to the user; stamina must not log them as well.
    stamina.instrumentation.set_on_retry_hooks([])
    server: Server | None = None
    try:
        server = profiles.server(profile)
        return asyncio.run(_with_client(work, server))
    except NoServer as error:
        _fail(ErrorDetail(code="no_server", title="No server configured", message=str(error), help=""), as_json=as_json)
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
            f"The address comes from {server.source}. Check that the server is running: `footplate dev` starts one "
            "on this machine, and `footplate config list` shows your profiles."
        )
    if isinstance(error, Unauthenticated):
        return (
            f"The key comes from {server.source}. "
            "Create one on the server with `footplate api-keys create` and save it with `footplate config set api_key`."
        )
    return error.help
