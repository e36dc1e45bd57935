"""Checks where requests want the shell of a run: on a backend that the server has, and that can do what the environment
asks for.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from footplate.domain.agents.environment_config import check_shell_mode
from footplate.domain.json import Json
from footplate.domain.organisations.principals import Principal

if TYPE_CHECKING:
    from footplate.api.service_container import ApiServices

EnvironmentLoader = Callable[[], Awaitable[Mapping[str, Json]]]


async def check_shell_modes(
    services: "ApiServices", modes: Iterable[tuple[str, Json]], load_environment: EnvironmentLoader | None = None
) -> None:
    """Raises `InvalidRequest` for the first shell mode that is not possible. `modes` are pairs of a field's name and
    its value. The environment is only loaded if there is a mode to check.
    """
    requested = [(field_name, mode) for field_name, mode in modes if mode]
    environment = await load_environment() if requested and load_environment is not None else None
    for field_name, mode in requested:
        check_shell_mode(mode, services.backends, environment=environment, field_name=field_name)


def modes_of_steps(
    agent: Mapping[str, Json], steps: Iterable[tuple[object, Mapping[str, Json]]]
) -> list[tuple[str, Json]]:
    """Returns the modes of an agent and of steps with their overrides."""
    return [
        ("agent.shell_mode", agent.get("shell_mode")),
        *(("shell_mode", overrides.get("shell_mode")) for _, overrides in steps),
    ]


def environment_of_session(services: "ApiServices", principal: Principal, session_id: str) -> EnvironmentLoader:
    async def load() -> Mapping[str, Json]:
        return (await services.reads.session(principal, session_id)).environment

    return load


def environment_by_id(
    services: "ApiServices", principal: Principal, environment_id: str, *, backend: str | None = None
) -> EnvironmentLoader:
    """`backend`: the one that the session chooses instead of the environment's."""

    async def load() -> Mapping[str, Json]:
        config = (await services.reads.environment(principal, environment_id)).config
        return config if backend is None else {**config, "backend": backend}

    return load
