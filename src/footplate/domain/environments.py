"""What a session's environment asks of whoever runs its commands, and what the operator's backend can give. Pure.

An environment narrows what the operator allows and never widens it. What a backend cannot hold to is refused: by the
api when it is asked for, and by a worker whose operator has changed the backend since.
"""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from footplate.domain.errors import InvalidRequest
from footplate.domain.json import Json, JsonObject
from footplate.domain.networks import AllowedHost, Network

_INSTALL: Final[Mapping[str, Callable[[str], str]]] = {
    "apt": lambda names: f"apt-get update\nDEBIAN_FRONTEND=noninteractive apt-get install -y {names}",
    "cargo": lambda names: f"cargo install --root /usr/local {names}",
    "gem": lambda names: f"gem install {names}",
    "go": lambda names: "\n".join(f"GOBIN=/usr/local/bin go install {name}" for name in names.split()),
    "npm": lambda names: f"npm install --global {names}",
    "pip": lambda names: f"pip install {names}",
}
PACKAGE_MANAGERS: Final = tuple(_INSTALL)
_PACKAGE: Final = re.compile(r"[^\s-]\S*")
"""With a version, an address or whatever else its manager understands, but no option of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentConfig:
    limited: bool = False
    """Whether its commands may reach nothing but `hosts`. If not, they reach what the operator lets them."""
    hosts: tuple[str, ...] = ()
    registries: bool = False
    mcp_servers: bool = False
    """Whether the agent's MCP servers may be reached beside `hosts`."""
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By package manager, those that ask for some."""
    image: str = ""
    """What its commands run in; empty: what the operator chose."""
    setup: str = ""
    """A script that prepares the image, once for each version of all that goes into it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """What the operator's choice can hold an environment to. Api and workers are given the same."""

    name: str
    network: Network
    """How far commands reach that nobody limits."""
    cuts_network: bool
    """It can take the network away from commands."""
    allow_lists: bool = False
    """It can hold commands to a list of hosts."""
    images: frozenset[str] = frozenset()
    """Those that an environment may name."""
    setups: bool = False
    """It runs setup scripts, which install packages too, and keeps what they made."""

    def may_reach(self, host: str) -> bool:
        """Does the operator let commands reach it, and it alone? Raises ValueError for what is no host."""
        return self.allow_lists and self.network.covers(AllowedHost.parse(host))


def load(stored: Mapping[str, Json]) -> EnvironmentConfig:
    """From the wire form, which is what is stored. Nothing at all is an environment that asks for nothing."""
    networking, packages = _object(stored.get("networking")), _object(stored.get("packages"))
    asked = {manager: _texts(packages.get(manager)) for manager in PACKAGE_MANAGERS}
    return EnvironmentConfig(
        limited=networking.get("type") == "limited",
        hosts=_texts(networking.get("allowed_hosts")),
        registries=networking.get("allow_package_managers") is True,
        mcp_servers=networking.get("allow_mcp_servers") is True,
        packages={manager: names for manager, names in asked.items() if names},
        image=str(stored.get("image") or ""),
        setup=str(stored.get("setup") or ""),
    )


def check(config: EnvironmentConfig, backend: Backend) -> None:
    """Raises `InvalidRequest` with the name of the field that the backend cannot honour."""
    if config.limited and not backend.cuts_network:
        raise _refusal("config.networking", f"the backend `{backend.name}` cannot limit the network")
    if config.limited:
        for number, host in enumerate(config.hosts):
            _check_host(f"config.networking.allowed_hosts.{number}", host, backend)
        if config.registries:
            what = "which registries those are is not known here; name them in allowed_hosts"
            raise _refusal("config.networking.allow_package_managers", what)
    if config.image and config.image not in backend.images:
        among = "is not among those that the operator lets environments name"
        what = f"{config.image!r} {among}" if backend.images else f"the backend `{backend.name}` has no images"
        raise _refusal("config.image", what)
    if config.setup and not backend.setups:
        raise _refusal("config.setup", f"the backend `{backend.name}` runs no setup scripts")
    _check_packages(config, backend)


def setup_of(config: EnvironmentConfig) -> str:
    """The packages, with the image's own package managers, in the order of their names; then the script. For a `sh`."""
    installing = [_INSTALL[manager](shlex.join(names)) for manager, names in sorted(config.packages.items())]
    return "\n".join([*(["set -e"] if installing else []), *installing, config.setup]).strip()


def network_of(config: EnvironmentConfig, backend: Backend) -> Network:
    """What its commands reach, if `check` has nothing against it."""
    if not config.limited:
        return backend.network
    return Network.allow(config.hosts) if config.hosts else Network()


def reaches_mcp_server(config: EnvironmentConfig, host: str, port: int) -> bool:
    """By name alone, as `Network.permits`. It is the worker that asks such a server, not a command: what those reach is
    another question.
    """
    return not config.limited or config.mcp_servers or Network.allow(config.hosts).permits(host, port)


def _check_packages(config: EnvironmentConfig, backend: Backend) -> None:
    if config.packages and not backend.setups:
        what = f"the backend `{backend.name}` does not install packages"
        raise _refusal(f"config.packages.{next(iter(config.packages))}", what)
    for manager, names in config.packages.items():
        for number, name in enumerate(names):
            if not _PACKAGE.fullmatch(name):
                raise _refusal(f"config.packages.{manager}.{number}", f"{name!r} is no package's name")


def _check_host(field_name: str, host: str, backend: Backend) -> None:
    try:
        allowed = backend.may_reach(host)
    except ValueError as error:
        raise _refusal(field_name, str(error)) from None
    if not allowed:
        raise _refusal(field_name, f"{host!r} {_why_not(backend)}")


def _why_not(backend: Backend) -> str:
    if not backend.allow_lists:
        return f"cannot be allowed by itself: the backend `{backend.name}` has no lists of hosts"
    return "is not among what the operator lets commands reach"


def _refusal(field_name: str, what: str) -> InvalidRequest:
    help_text = "Leave it out, or ask the operator what FOOTPLATE_ENVIRONMENT and the settings beside it can give."
    return InvalidRequest(f"{field_name}: {what}", field=field_name, help_text=help_text)


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()
