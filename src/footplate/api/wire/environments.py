"""Wire models of environments. Environments of type `cloud` run in the operator's own backend. A setting that the
backend cannot enforce is rejected with an error that names the setting.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from footplate.api.wire.request_base import (
    UNSUPPORTED,
    Body,
    Metadata,
    MetadataPatch,
    Name,
    Text,
    merge_metadata,
    optional_timestamp,
    timestamp,
)
from footplate.domain.agents import environment_config
from footplate.domain.agents.agents_and_config import EnvironmentRecord
from footplate.domain.agents.environment_config import PACKAGE_MANAGERS, Backend, BackendName
from footplate.domain.json import Json, JsonObject
from footplate.domain.network.command_network_access import AllowedHost

_MAX_ITEMS: Final = 256
_CLOSED_NETWORK: Final[JsonObject] = {
    "allowed_hosts": [],
    "allow_mcp_servers": False,
    "allow_package_managers": False,
}


def _check_host(name: str) -> str:
    AllowedHost.parse(name)
    return name


Host = Annotated[str, StringConstraints(min_length=1, max_length=253), AfterValidator(_check_host)]
Package = Annotated[Text, StringConstraints(min_length=1, max_length=256)]
PackageList = Annotated[list[Package], Field(max_length=_MAX_ITEMS)]


class Networking(Body):
    """Network access. For `limited`, an omitted field keeps its previous value, or is empty or false if it has none."""

    type: Literal["unrestricted", "limited"]
    allowed_hosts: Annotated[list[Host], Field(max_length=_MAX_ITEMS)] | None = None
    allow_mcp_servers: bool | None = None
    allow_package_managers: bool | None = None


def _check_network_fields(networking: Networking | None) -> Networking | None:
    if networking is not None and networking.type == "unrestricted" and len(networking.model_fields_set) > 1:
        raise ValueError("`unrestricted` accepts no other fields")
    return networking


class Packages(Body):
    type: Literal["packages"] | None = None
    apt: PackageList | None = None
    cargo: PackageList | None = None
    gem: PackageList | None = None
    go: PackageList | None = None
    npm: PackageList | None = None
    pip: PackageList | None = None


class CloudConfig(Body):
    type: Literal["cloud"]
    networking: Annotated[Networking | None, AfterValidator(_check_network_fields)] = None
    packages: Packages | None = None
    image: Annotated[str, StringConstraints(max_length=256)] | None = None
    """`image` and `setup` are Footplate extensions. An empty `image` selects the operator's image."""
    setup: Annotated[Text, StringConstraints(max_length=65_536)] | None = None
    backend: Annotated[
        BackendName | Literal[""] | None,
        Field(description="Where commands run. Empty: the operator's default. A Footplate extension."),
    ] = None


class SelfHostedConfig(Body):
    type: Literal["self_hosted"]


def _refuse_self_hosted(config: CloudConfig | SelfHostedConfig | None) -> CloudConfig | SelfHostedConfig | None:
    if isinstance(config, SelfHostedConfig):
        raise PydanticCustomError(UNSUPPORTED, "`self_hosted` environments are not supported by this server")
    return config


def _refuse_type_change(config: CloudConfig | SelfHostedConfig | None) -> CloudConfig | SelfHostedConfig | None:
    if isinstance(config, SelfHostedConfig):
        raise PydanticCustomError("invalid_config_type_change", "the type of an environment cannot be changed")
    return config


def _check_scope(scope: str | None) -> str | None:
    if scope == "account":
        raise PydanticCustomError(UNSUPPORTED, "only `organization` is supported by this server")
    return scope


AnyConfig = Annotated[CloudConfig | SelfHostedConfig, Field(discriminator="type")]
Config = Annotated[AnyConfig | None, AfterValidator(_refuse_self_hosted)]
UpdatedConfig = Annotated[AnyConfig | None, AfterValidator(_refuse_type_change)]
Scope = Annotated[Literal["organization", "account"] | None, AfterValidator(_check_scope)]
Description = Annotated[str, StringConstraints(max_length=2048)]


class EnvironmentCreate(Body):
    name: Name
    description: Description | None = None
    config: Config = None
    metadata: Metadata = Field(default_factory=dict)
    scope: Scope = None


class EnvironmentUpdate(Body):
    """An omitted field keeps its value. Null clears the description and has no effect on other fields."""

    name: Name | None = None
    description: Description | None = None
    config: UpdatedConfig = None
    metadata: MetadataPatch | None = None
    scope: Scope = None


def build_config(
    config: CloudConfig | SelfHostedConfig | None,
    backends: Sequence[Backend],
    *,
    previous: JsonObject | None = None,
) -> JsonObject:
    """Returns a configuration with every field that clients expect. Omitted fields keep their previous values.

    Raises `InvalidRequest` for settings that the backend cannot enforce.
    """
    requested = config if isinstance(config, CloudConfig) else CloudConfig(type="cloud")
    previous = previous or {}
    built: JsonObject = {
        "type": "cloud",
        "networking": _build_networking(requested.networking, previous.get("networking")),
        "packages": _build_packages(requested.packages) if requested.packages or not previous else previous["packages"],
    }
    for name, value in (("image", requested.image), ("setup", requested.setup), ("backend", requested.backend)):
        if effective := previous.get(name) if value is None else value:
            built[name] = effective  # Footplate extensions are shown only if they are set
    check_stored_config(built, backends)
    return built


def check_stored_config(
    stored: Mapping[str, Json], backends: Sequence[Backend], *, field_name: str = "config.backend"
) -> None:
    """Raises `InvalidRequest` for a backend that the operator does not offer, and for settings that the backend cannot
    enforce.
    """
    config = environment_config.load_environment_config(stored)
    environment_config.check_supported(
        config, environment_config.select_backend(config, backends, field_name=field_name)
    )


def _build_networking(requested: Networking | None, previous: Json) -> JsonObject:
    old: JsonObject = previous if isinstance(previous, dict) else {"type": "unrestricted"}
    if requested is None:
        return old
    if requested.type == "unrestricted":
        return {"type": "unrestricted"}
    sent = {name: value for name, value in requested.model_dump(exclude={"type"}).items() if value is not None}
    existing = old if old.get("type") == "limited" else {}
    return {"type": "limited", **_CLOSED_NETWORK, **existing, **sent}


def _build_packages(requested: Packages | None) -> JsonObject:
    sent = requested.model_dump() if requested else {}
    return {"type": "packages", **{manager: sent.get(manager) or [] for manager in PACKAGE_MANAGERS}}


def make_environment_update(
    body: EnvironmentUpdate, backends: Sequence[Backend]
) -> Callable[[EnvironmentRecord], EnvironmentRecord]:
    def change(record: EnvironmentRecord) -> EnvironmentRecord:
        patch = {key: value or None for key, value in (body.metadata or {}).items()}
        config = record.config if body.config is None else build_config(body.config, backends, previous=record.config)
        return replace(
            record,
            name=body.name or record.name,
            description=body.description if "description" in body.model_fields_set else record.description,
            config=config,
            metadata=merge_metadata(record.metadata, patch),
        )

    return change


def serialize_environment(record: EnvironmentRecord) -> JsonObject:
    return {
        "id": record.id,
        "type": "environment",
        "name": record.name,
        "description": record.description,
        "config": record.config,
        "metadata": {**record.metadata},
        "scope": "organization",
        "created_at": timestamp(record.created_at),
        "updated_at": timestamp(record.updated_at),
        "archived_at": optional_timestamp(record.archived_at),
    }
