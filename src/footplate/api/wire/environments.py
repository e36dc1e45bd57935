"""Environments on the wire. `cloud` is the operator's own backend; what that cannot enforce yet is refused."""

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from footplate.api.wire.base import (
    UNSUPPORTED,
    Body,
    Metadata,
    MetadataPatch,
    Name,
    OnlyEmpty,
    optional_timestamp,
    patched,
    timestamp,
)
from footplate.domain.agents import EnvironmentRecord
from footplate.domain.json import JsonObject

PACKAGE_MANAGERS: Final = ("apt", "cargo", "gem", "go", "npm", "pip")


class Networking(Body):
    type: Literal["unrestricted", "limited"]
    allowed_hosts: list[str] | None = None
    allow_mcp_servers: bool | None = None
    allow_package_managers: bool | None = None


def _unrestricted(networking: Networking | None) -> Networking | None:
    if networking is None:
        return None
    if networking.type == "limited":
        raise PydanticCustomError(UNSUPPORTED, "`limited` cannot be enforced by this server; only `unrestricted` is")
    if len(networking.model_fields_set) > 1:
        raise ValueError("`unrestricted` takes no further fields")
    return networking


class Packages(Body):
    type: Literal["packages"] | None = None
    apt: OnlyEmpty = None
    cargo: OnlyEmpty = None
    gem: OnlyEmpty = None
    go: OnlyEmpty = None
    npm: OnlyEmpty = None
    pip: OnlyEmpty = None


class CloudConfig(Body):
    type: Literal["cloud"]
    networking: Annotated[Networking | None, AfterValidator(_unrestricted)] = None
    packages: Packages | None = None


class SelfHostedConfig(Body):
    type: Literal["self_hosted"]


def _cloud(config: CloudConfig | SelfHostedConfig | None) -> CloudConfig | SelfHostedConfig | None:
    if isinstance(config, SelfHostedConfig):
        raise PydanticCustomError(UNSUPPORTED, "`self_hosted` environments are not supported by this server")
    return config


def _still_cloud(config: CloudConfig | SelfHostedConfig | None) -> CloudConfig | SelfHostedConfig | None:
    if isinstance(config, SelfHostedConfig):
        raise PydanticCustomError("invalid_config_type_change", "the type of an environment cannot be changed")
    return config


def _organisation_wide(scope: str | None) -> str | None:
    if scope == "account":
        raise PydanticCustomError(UNSUPPORTED, "only `organization` is supported by this server")
    return scope


AnyConfig = Annotated[CloudConfig | SelfHostedConfig, Field(discriminator="type")]
Config = Annotated[AnyConfig | None, AfterValidator(_cloud)]
NextConfig = Annotated[AnyConfig | None, AfterValidator(_still_cloud)]
Scope = Annotated[Literal["organization", "account"] | None, AfterValidator(_organisation_wide)]
Description = Annotated[str, StringConstraints(max_length=2048)]


class EnvironmentCreate(Body):
    name: Name
    description: Description | None = None
    config: Config = None
    metadata: Metadata = Field(default_factory=dict)
    scope: Scope = None


class EnvironmentUpdate(Body):
    """A null keeps as an omitted field does, but for the description, which it clears."""

    name: Name | None = None
    description: Description | None = None
    config: NextConfig = None
    metadata: MetadataPatch | None = None
    scope: Scope = None


def configuration() -> JsonObject:
    """The one configuration that can be asked for today, with every field that clients expect."""
    return {
        "type": "cloud",
        "networking": {"type": "unrestricted"},
        "packages": {"type": "packages", **{manager: [] for manager in PACKAGE_MANAGERS}},
    }


def change_of(body: EnvironmentUpdate) -> Callable[[EnvironmentRecord], EnvironmentRecord]:
    def change(record: EnvironmentRecord) -> EnvironmentRecord:
        patch = {key: value or None for key, value in (body.metadata or {}).items()}
        return replace(
            record,
            name=body.name or record.name,
            description=body.description if "description" in body.model_fields_set else record.description,
            metadata=patched(record.metadata, patch),
        )

    return change


def answer(record: EnvironmentRecord) -> JsonObject:
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
