"""Defines the child processes of `footplate dev`: the API, the workers and the scripted model (a model server with
prepared replies).

Each process gets only the environment variables that it needs.
"""

import os
import secrets
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Final

from footplate.config import Settings
from footplate.settings_sources import without_settings
from footplate.stack import PythonService, Stack
from footplate.stack.free_ports import LOOPBACK, find_free_port
from footplate.stack.services.python_service import http_status, is_http_ok

_PASSED_VARIABLES: Final = frozenset(
    {
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TZ",
        "TMPDIR",
        "USER",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "NO_COLOR",
        "DOCKER_HOST",
    }
    | {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"}
)
_PASSED_PREFIXES: Final = ("FOOTPLATE_", "ANTHROPIC_", "OPENAI_", "OTEL_", "SENTRY_")
WORKER_READY: Final = b"worker.ready"
"""The log action that a worker writes once it accepts turns."""


def create_api_program(stack: Stack, settings: Settings) -> PythonService:
    return PythonService(
        stack.directory / "api",
        title="API",
        module="footplate",
        arguments=("api",),
        environment=_environment(stack, settings),
        log_file=stack.log_file("api"),
        address=f"{settings.host}:{settings.port}",
        probe=partial(is_http_ok, settings.host, settings.port, "/readyz"),
    )


def create_worker_program(
    stack: Stack, settings: Settings, number: int, endpoint: Mapping[str, str] | None = None
) -> PythonService:
    """Returns a worker. The variables in `endpoint` replace those of the model provider in the environment."""
    metrics = "off" if settings.metrics_address == "off" else f"{LOOPBACK}:{find_free_port()}"
    from footplate.wiring import model_connections

    keys = {name: os.environ[name] for name in model_connections.list_key_variables(settings) if name in os.environ}
    own = {**keys, "FOOTPLATE_METRICS_ADDRESS": metrics, **(endpoint or {})}
    return PythonService(
        stack.directory / f"worker-{number}",
        title=f"Worker {number}",
        module="footplate",
        arguments=("worker",),
        environment={**_environment(stack, settings), **own},
        log_file=stack.log_file(f"worker-{number}"),
        address="" if metrics == "off" else f"{metrics}/metrics",
        ready_mark=WORKER_READY,
    )


def create_scripted_model(stack: Stack, scenario: Path) -> tuple[PythonService, dict[str, str]]:
    """Returns a model server that plays a scenario file, and the variables that make a worker use it."""
    port, key = find_free_port(), secrets.token_hex(24)

    async def is_ready() -> bool:
        return await http_status(LOOPBACK, port, "/v1/models", {"x-api-key": key}) == HTTPStatus.OK

    program = PythonService(
        stack.directory / "scripted-model",
        title="Scripted model",
        module="footplate.testing",
        arguments=("--port", str(port), "--script", str(scenario)),
        # Not passed as an argument: every user of the machine can read command lines.
        environment={**select_environment(os.environ), "FOOTPLATE_SCRIPTED_KEY": key},
        log_file=stack.log_file("scripted-model"),
        address=f"{LOOPBACK}:{port}",
        probe=is_ready,
    )
    url = f"http://{LOOPBACK}:{port}"
    return program, {"FOOTPLATE_ANTHROPIC_BASE_URL": url, "FOOTPLATE_ANTHROPIC_API_KEY": key}


def select_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Selects the variables of the launcher's environment that model providers and networks need."""
    return {
        name: value
        for name, value in environment.items()
        if name.upper() in _PASSED_VARIABLES or name.upper().startswith(_PASSED_PREFIXES)
    }


def _environment(stack: Stack, settings: Settings) -> dict[str, str]:
    own = {
        **stack.settings.environment(),
        "FOOTPLATE_DATA_DIR": str(settings.data_dir),
        "FOOTPLATE_HOST": settings.host,
        "FOOTPLATE_PORT": str(settings.port),
        "FOOTPLATE_ENVIRONMENT": settings.environment,
        # This is the developer's own machine, so every repository on it may be a project.
        "FOOTPLATE_PROJECTS_ROOT": settings.projects_root or "/",
        # `footplate run` works in the directory where it is called.
        "FOOTPLATE_NAMED_DIRECTORIES": "1",
        **({"FOOTPLATE_METRICS_ADDRESS": settings.metrics_address} if settings.metrics_address else {}),
    }
    return {**without_settings(select_environment(os.environ), own, Settings.model_fields), **own}
