"""Reports that a command needs packages that are not installed, and the extra of Footplate that has them."""

from collections.abc import Sequence
from typing import Final

from footplate.cli.render import terminal_io

_EXTRAS: Final = {"aiodocker": "docker", "claude_agent_sdk": "claude"}
"""The extras with a single package. The packages of `dev` are programs, and the others are those of `server`."""


def report_missing_package(error: ModuleNotFoundError, argv: Sequence[str]) -> bool:
    """Returns False if the error is not about another package."""
    package = (error.name or "").partition(".")[0]
    if package in {"", "footplate"}:
        return False
    extra = _EXTRAS.get(package, "dev" if "dev" in argv[1:2] else "server")
    terminal_io.print_error(
        f"This command needs the package {package}, which is not installed.",
        f"Run `pip install 'footplate[{extra}]'`.",
    )
    return True
