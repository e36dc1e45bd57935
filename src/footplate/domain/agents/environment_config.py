"""The configuration of a session's environment, and the check that the operator's backend supports it.

An environment can restrict the access that the operator allows, but never extend it. The API rejects unsupported
configurations. The worker checks them again, in case the operator has changed the backend since.
"""

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, as_object
from footplate.domain.network.command_network_access import AllowedHost, Network

_INSTALL: Final[Mapping[str, Callable[[str], str]]] = {
    "apt": lambda names: f"apt-get update\nDEBIAN_FRONTEND=noninteractive apt-get install -y {names}",
    "cargo": lambda names: f"cargo install --root /usr/local {names}",
    "gem": lambda names: f"gem install {names}",
    "go": lambda names: "\n".join(f"GOBIN=/usr/local/bin go install {name}" for name in names.split()),
    "npm": lambda names: f"npm install --global {names}",
    "pip": lambda names: f"pip install {names}",
}
PACKAGE_MANAGERS: Final = tuple(_INSTALL)
BackendName = Literal["sandbox", "docker", "unsandboxed"]
ShellMode = Literal["host", "container"]
_PACKAGE: Final = re.compile(r"[^\s-]\S*")
"""A package name, with a version or a URL if its manager understands that, but not a command-line option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentConfig:
    limited: bool = False
    """Whether commands may reach only `hosts`. If not, they reach what the operator allows."""
    hosts: tuple[str, ...] = ()
    registries: bool = False
    mcp_servers: bool = False
    """Whether the agent's MCP servers may be reached in addition to `hosts`."""
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The packages to install, by package manager."""
    image: str = ""
    """The image that commands run in. Empty: the operator's default."""
    setup: str = ""
    """A script that prepares the image. It runs once for each combination of image, packages and script."""
    backend: str = ""
    """The backend that the session chose. Empty: the operator's default."""
    shell_mode: str = ""
    """Whether the turn's commands run on the host or in a container. Empty: as the backend does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """What the operator's backend can enforce. The API and the workers must have the same settings."""

    name: str
    network: Network
    """The network of commands whose environment does not limit it."""
    can_limit_network: bool
    """Whether it can cut commands off from the network."""
    supports_allow_lists: bool = False
    """Whether it can restrict commands to a list of hosts."""
    images: frozenset[str] = frozenset()
    """The images that an environment may select."""
    supports_setup: bool = False
    """Whether it runs setup scripts and installs packages, and caches the result."""

    def allows_host(self, host: str) -> bool:
        """Whether the operator allows an environment to list this host. Raises ValueError if it is not a valid host."""
        return self.supports_allow_lists and self.network.covers(AllowedHost.parse(host))


def load_environment_config(stored: Mapping[str, Json]) -> EnvironmentConfig:
    """Load a stored configuration, which has the form of the API. An empty one requests nothing."""
    networking, packages = as_object(stored.get("networking")), as_object(stored.get("packages"))
    requested = {manager: _texts(packages.get(manager)) for manager in PACKAGE_MANAGERS}
    return EnvironmentConfig(
        limited=networking.get("type") == "limited",
        hosts=_texts(networking.get("allowed_hosts")),
        registries=networking.get("allow_package_managers") is True,
        mcp_servers=networking.get("allow_mcp_servers") is True,
        packages={manager: names for manager, names in requested.items() if names},
        image=str(stored.get("image") or ""),
        setup=str(stored.get("setup") or ""),
        backend=str(stored.get("backend") or ""),
    )


def resolve_backend(config: EnvironmentConfig, default: str) -> str:
    """Return the name of the backend that runs the commands. `default` is the operator's default backend.

    `host` never selects `unsandboxed` for a session with another backend, so a turn cannot leave the sandbox.
    """
    backend = config.backend or default
    if config.shell_mode == "container":
        return "docker"
    return "sandbox" if config.shell_mode == "host" and backend == "docker" else backend


def find_missing_backend(config: EnvironmentConfig, offered: Sequence[str]) -> str | None:
    """Return the backend that the configuration needs, or None if it is offered. The first one offered is the
    default.
    """
    backend = resolve_backend(config, offered[0])
    return None if backend in offered else backend


def select_backend(
    config: EnvironmentConfig, backends: Sequence[Backend], *, field_name: str = "config.backend"
) -> Backend:
    """Return the backend that the configuration selects; the first one is the default. Raise `InvalidRequest` if the
    operator does not allow it.
    """
    name = resolve_backend(config, backends[0].name)
    for backend in backends:
        if backend.name == name:
            return backend
    raise _backend_refusal(field_name, f"{name!r} is not one of", backends)


def check_shell_mode(
    shell_mode: Json,
    backends: Sequence[Backend],
    *,
    environment: Mapping[str, Json] | None = None,
    field_name: str = "shell_mode",
) -> None:
    """Raise `InvalidRequest` if the operator allows no backend for this shell mode, or if that backend cannot enforce
    the configuration of the environment. None: the environment is not known yet.
    """
    names = [backend.name for backend in backends]
    lacks_host = "docker" in names and "sandbox" not in names  # `unsandboxed` never replaces a container
    if (shell_mode == "container" and "docker" not in names) or (shell_mode == "host" and lacks_host):
        raise _backend_refusal(field_name, f"{shell_mode!r} is possible with none of", backends)
    if shell_mode and environment is not None:
        config = replace(load_environment_config(environment), shell_mode=str(shell_mode))
        try:
            check_supported(config, select_backend(config, backends, field_name=field_name))
        except InvalidRequest as error:
            message = f"{field_name}: {shell_mode!r} is not possible in the environment of the session: {error.message}"
            help_text = "Omit it, or choose an environment without this setting."
            raise InvalidRequest(message, field=field_name, help_text=help_text) from error


def check_supported(config: EnvironmentConfig, backend: Backend) -> None:
    """Raise `InvalidRequest`, with the name of the field, if the backend cannot enforce the configuration."""
    if config.limited and not backend.can_limit_network:
        raise _refusal("config.networking", f"the backend `{backend.name}` cannot limit the network")
    if config.limited:
        for number, host in enumerate(config.hosts):
            _check_host(f"config.networking.allowed_hosts.{number}", host, backend)
        if config.registries:
            reason = "this server has no list of package registries; list the hosts in `allowed_hosts`"
            raise _refusal("config.networking.allow_package_managers", reason)
    if config.image and config.image not in backend.images:
        not_allowed = "is not an image that the operator allows"
        reason = (
            f"{config.image!r} {not_allowed}" if backend.images else f"the backend `{backend.name}` does not use images"
        )
        raise _refusal("config.image", reason)
    if config.setup and not backend.supports_setup:
        raise _refusal("config.setup", f"the backend `{backend.name}` does not run setup scripts")
    _check_packages(config, backend)


def build_setup_script(config: EnvironmentConfig) -> str:
    """Return the shell script that installs the packages, sorted by package manager, and then runs the setup script."""
    installing = [_INSTALL[manager](shlex.join(names)) for manager, names in sorted(config.packages.items())]
    return "\n".join([*(["set -e"] if installing else []), *installing, config.setup]).strip()


def resolve_network(config: EnvironmentConfig, backend: Backend) -> Network:
    """Return the network of the environment's commands. Call `check_supported` first."""
    if not config.limited:
        return backend.network
    return Network.allow(config.hosts) if config.hosts else Network()


def may_call_mcp_server(config: EnvironmentConfig, host: str, port: int) -> bool:
    """Whether the agent's MCP server at this host may be called. Only the name is checked, as in `Network.permits`.

    The worker connects to MCP servers itself, so the network of commands does not apply to them.
    """
    return not config.limited or config.mcp_servers or Network.allow(config.hosts).permits(host, port)


def _check_packages(config: EnvironmentConfig, backend: Backend) -> None:
    if config.packages and not backend.supports_setup:
        reason = f"the backend `{backend.name}` does not install packages"
        raise _refusal(f"config.packages.{next(iter(config.packages))}", reason)
    for manager, names in config.packages.items():
        for number, name in enumerate(names):
            if not _PACKAGE.fullmatch(name):
                raise _refusal(f"config.packages.{manager}.{number}", f"{name!r} is not a package name")


def _check_host(field_name: str, host: str, backend: Backend) -> None:
    try:
        allowed = backend.allows_host(host)
    except ValueError as error:
        raise _refusal(field_name, str(error)) from None
    if not allowed:
        raise _refusal(field_name, f"{host!r} {_host_refusal(backend)}")


def _host_refusal(backend: Backend) -> str:
    if not backend.supports_allow_lists:
        return f"cannot be allowed, because the backend `{backend.name}` cannot limit the network to a list of hosts"
    return "is not a host that the operator allows"


def _refusal(field_name: str, reason: str) -> InvalidRequest:
    help_text = "Remove it, or ask the operator what FOOTPLATE_ENVIRONMENT and the related settings allow."
    return InvalidRequest(f"{field_name}: {reason}", field=field_name, help_text=help_text)


def _backend_refusal(field_name: str, reason: str, backends: Sequence[Backend]) -> InvalidRequest:
    names = ", ".join(f"`{backend.name}`" for backend in backends)
    return InvalidRequest(
        f"{field_name}: {reason} the backends of this server, which are {names}",
        field=field_name,
        help_text="Omit it, or ask the operator to add the backend to FOOTPLATE_BACKENDS.",
    )


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
