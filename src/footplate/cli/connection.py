"""Connects a command to its server: selects the server, runs the command's function with an API client, and reports
errors.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NoReturn, TypeVar

import stamina.instrumentation
import typer

from footplate.cli.json_output_models import ConflictAnswer, ConflictDetail, ErrorAnswer, ErrorDetail
from footplate.cli.profile import server_profiles
from footplate.cli.profile.server_profiles import NoServerSelected, Server
from footplate.cli.render import terminal_io
from footplate.cli.render.terminal_io import Exit, print_json_line
from footplate.client import (
    ApiError,
    AsyncFootplate,
    ClientError,
    InvalidRequest,
    RateLimited,
    StreamLost,
    Unauthenticated,
    Unreachable,
)

T = TypeVar("T")
RETRY_SECONDS: Final = 180.0
"""Seconds to retry a server that went away, because it may be restarting."""


def run_with_client(
    work: Callable[[AsyncFootplate, Server], Awaitable[T]],
    *,
    profile: str | None = None,
    as_json: bool = False,
    options: Mapping[str, str] | None = None,
    server: Server | None = None,
) -> T:
    """`options`: fields of the request, and the options that a person used for them. `server`: instead of the one that
    the profile and the environment select.
    """
    disable_retry_logs()
    try:
        server = server or server_profiles.select_server(profile)
        return asyncio.run(_with_client(work, server, None if as_json else _RateLimitNote()))
    except NoServerSelected as error:
        _fail(ErrorDetail(code="no_server", title="No server configured", message=str(error), help=""), as_json=as_json)
    except ClientError as error:
        assert server is not None
        fail_with_client_error(error, server, as_json=as_json, options=options)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(Exit.DETACHED) from None


def disable_retry_logs() -> None:
    """Disables the log lines of stamina, because the views report retries to the user."""
    stamina.instrumentation.set_on_retry_hooks([])


def fail_with_client_error(
    error: ClientError, server: Server, *, as_json: bool, options: Mapping[str, str] | None = None
) -> NoReturn:
    """Reports the error and ends the command with its exit code."""
    detail = _error_detail(error, _help_text(error, server))
    field = error.field if isinstance(error, InvalidRequest) else None
    if not as_json and field and options and field in options:
        detail.message = detail.message.replace(f"{field}:", f"{options[field]}:", 1)
    code = Exit.UNREACHABLE if isinstance(error, Unreachable | StreamLost) else Exit.FAILED
    _fail(detail, code, as_json=as_json)


async def _with_client(
    work: Callable[[AsyncFootplate, Server], Awaitable[T]], server: Server, note: "_RateLimitNote | None"
) -> T:
    async with AsyncFootplate(
        server.base_url, server.api_key, patience=RETRY_SECONDS, on_rate_limit=note.print_once if note else None
    ) as client:
        return await work(client, server)


class _RateLimitNote:
    """Says once that the command waits, so that the user does not take it for stuck."""

    def __init__(self) -> None:
        self._printed = False

    def print_once(self, error: RateLimited) -> None:
        if not self._printed:
            self._printed = True
            terminal_io.err().print(f"[yellow]{terminal_io.quote(error.message)} The command waits and tries again.[/]")


def _fail(detail: ErrorDetail, code: Exit = Exit.UNREACHABLE, *, as_json: bool) -> NoReturn:
    if as_json:
        model = ConflictAnswer if isinstance(detail, ConflictDetail) else ErrorAnswer
        print_json_line(model.model_validate({"error": detail, "exit_code": code}).model_dump(mode="json"))
    else:
        terminal_io.print_error(detail.message, detail.help)
    raise typer.Exit(code) from None


def _error_detail(error: ClientError, help_text: str) -> ErrorDetail:
    fields = {"code": error.code, "title": error.title, "message": error.message, "help": help_text}
    if isinstance(error, ApiError) and error.conflicts:
        return ConflictDetail(**fields, conflicts=error.conflicts)
    return ErrorDetail(**fields)


def _help_text(error: ClientError, server: Server) -> str:
    if isinstance(error, Unreachable):
        return (
            f"The address comes from {server.source}. Check the address and that the server is running. "
            "`footplate dev` starts a server on this machine."
        )
    if isinstance(error, Unauthenticated):
        return (
            f"The server address comes from {server.source}. Sign in with `footplate login`, or save an API key of "
            "that server with `footplate config set api_key` or in FOOTPLATE_API_KEY."
        )
    return error.help
