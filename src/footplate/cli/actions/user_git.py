"""Runs the user's own git in the user's own repository."""

import os
import subprocess
from pathlib import Path

from footplate.client import ClientError


def run_git(
    directory: Path, *argv: str, extra_env: dict[str, str] | None = None, stdin: bytes | None = None
) -> "subprocess.CompletedProcess[bytes]":
    environment = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", **(extra_env or {})}
    try:
        return subprocess.run(
            ["git", *argv], cwd=directory, env=environment, input=stdin, capture_output=True, check=False
        )
    except FileNotFoundError:
        if not directory.exists():
            raise ClientError(
                f"The directory {directory.absolute()} does not exist.",
                help_text="Pass an existing checkout with --directory.",
            ) from None
        raise ClientError("git is not installed on this machine.", help_text="Install git and try again.") from None
    except NotADirectoryError:
        raise ClientError(
            f"{directory.absolute()} is not a directory.", help_text="Pass a checkout with --directory."
        ) from None


def require_success(process: "subprocess.CompletedProcess[bytes]", action: str) -> bytes:
    if process.returncode != 0:
        raise ClientError(f"git could not {action}: {decode_output(process.stderr)}", help_text="Nothing was changed.")
    return process.stdout


def decode_output(output: bytes) -> str:
    return output.decode("utf-8", "replace").strip()
