"""Environments: `cloud` means the operator's own machines."""

import secrets

import anthropic
from anthropic.types.beta import BetaEnvironmentArchivedError, BetaInvalidConfigTypeChangeError
from bench.support.sdk.sdk_client import SdkClient
from tests.compat.checks import read_pages, require_equal
from tests.compat.registry import different, refused, supported

_NARROWS = "Narrows the network access that the operator allows: `unrestricted` is all of it, `limited` is a part."
_WITHIN = "Only hosts that the operator allows, by default none. Other hosts are refused by name."
_MANAGERS = ("apt", "cargo", "gem", "go", "npm", "pip")


def _name() -> str:
    return f"probe-{secrets.token_hex(6)}"


def _limited(**fields: object) -> dict[str, object]:
    return {"type": "cloud", "networking": {"type": "limited", **fields}}


@supported("environments.create")
@supported("environments.create", "name", note="In use by an environment that is not archived: 409.")
@supported("environments.create", "description", "metadata")
@supported("environments.create", "config", note="Default `cloud`: the operator's own machines.")
@different("environments.create", "scope", note="Only `organization`; `account` is refused.")
@supported("environments.retrieve")
@supported("environments.retrieve", "environment_id")
@different("CloudConfigParams", "networking", note=_NARROWS)
@supported("CloudConfigParams", "packages")
@supported("UnrestrictedNetworkParam")
@supported("Environment", "id", "type", "name", "description", "config", "metadata")
@supported("Environment", "created_at", "updated_at", "archived_at")
@different("Environment", "scope", note="Always `organization`.")
async def a_created_environment_has_the_requested_fields(door: SdkClient) -> None:
    name = _name()
    config = {"type": "cloud", "networking": {"type": "unrestricted"}, "packages": {"type": "packages", "pip": []}}
    made = await door.call(
        "environments.create", name=name, description="D", metadata={"a": "1"}, config=config, scope="organization"
    )
    found = await door.call("environments.retrieve", made.id)
    require_equal(found, made)
    require_equal((found.id.split("_")[0], found.type, found.name), ("env", "environment", name))
    require_equal((found.description, found.metadata, found.archived_at), ("D", {"a": "1"}, None))
    require_equal((found.config.type, found.config.networking.type), ("cloud", "unrestricted"))
    require_equal([getattr(found.config.packages, manager) for manager in _MANAGERS], [[]] * 6)
    bare = await door.call("environments.create", name=_name())
    require_equal((bare.config, bare.description, bare.metadata), (found.config, None, {}))
    await door.expect_error(anthropic.ConflictError, "environments.create", name=name)
    await door.expect_error(anthropic.BadRequestError, "environments.create", name="", field="name")
    await door.expect_error(
        anthropic.BadRequestError, "environments.create", name=_name(), scope="account", field="scope"
    )
    await door.expect_error(anthropic.NotFoundError, "environments.retrieve", "env_none")


@supported(
    "LimitedNetworkParams",
    "allow_mcp_servers",
    note="Without it, a server is reachable if `allowed_hosts` has its host.",
)
async def a_limited_network_without_hosts_is_stored(door: SdkClient) -> None:
    networking = {"type": "limited", "allow_mcp_servers": True}
    made = await door.call("environments.create", name=_name(), config={"type": "cloud", "networking": networking})
    stored = (await door.call("environments.update", made.id, config={"type": "cloud"})).config.networking
    require_equal((stored.type, stored.allowed_hosts), ("limited", []))
    require_equal((stored.allow_mcp_servers, stored.allow_package_managers), (True, False))


@different("LimitedNetworkParams", "allowed_hosts", note=_WITHIN)
@refused(
    "LimitedNetworkParams", "allow_package_managers", note="List the registries in `allowed_hosts`. False is accepted."
)
@refused("SelfHostedConfigParams", note="There is no work queue for remote workers.")
@refused("PackagesParams", "apt", "cargo", "gem", "go", "npm", "pip", note="An empty list is accepted.")
async def unenforceable_settings_are_refused(door: SdkClient) -> None:
    for config, field in (
        ({"type": "self_hosted"}, "config"),
        (_limited(allowed_hosts=["example.com"]), "config.networking.allowed_hosts.0"),
        (_limited(allow_package_managers=True), "config.networking.allow_package_managers"),
        *(({"type": "cloud", "packages": {manager: ["x"]}}, f"config.packages.{manager}") for manager in _MANAGERS),
    ):
        await door.expect_error(
            anthropic.BadRequestError, "environments.create", name=_name(), config=config, field=field
        )


@supported("environments.update", note="An archived environment: `BetaEnvironmentArchivedError`.")
@supported("environments.update", "environment_id", "description")
@supported("environments.update", "name", note="Null keeps the name.")
@supported("environments.update", "metadata", note="Merged by key; null or an empty string removes a key.")
@supported("environments.update", "config", note="A change of type: `BetaInvalidConfigTypeChangeError`.")
@different("environments.update", "scope", note="Only `organization`; `account` is refused.")
@supported("environments.archive", note="Its sessions continue; no new session can use it.")
@supported("environments.archive", "environment_id")
@different("environments.delete", note="Immediate, even if sessions use it: they continue.")
@supported("environments.delete", "environment_id")
async def an_environment_is_updated_archived_and_deleted(door: SdkClient) -> None:
    made = await door.environment(description="D", metadata={"a": "1", "b": "2", "c": "3"})
    updated = await door.call("environments.update", made.id, metadata={"a": None, "b": "", "d": "4"}, name=None)
    require_equal((updated.metadata, updated.description, updated.name), ({"c": "3", "d": "4"}, "D", made.name))
    name = _name()
    updated = await door.call(
        "environments.update", made.id, name=name, description=None, config={"type": "cloud"}, scope="organization"
    )
    require_equal((updated.name, updated.description, updated.config), (name, None, made.config))
    require_equal((await door.call("environments.update", made.id, description="")).description, "")
    other = await door.environment()
    await door.expect_error(anthropic.ConflictError, "environments.update", made.id, name=other.name)
    await door.expect_error(anthropic.BadRequestError, "environments.update", made.id, scope="account", field="scope")
    changed = {"config": {"type": "self_hosted"}}
    await door.expect_error(BetaInvalidConfigTypeChangeError, "environments.update", made.id, field="config", **changed)
    archived = await door.call("environments.archive", made.id)
    require_equal(archived.archived_at is not None, True)
    require_equal((await door.call("environments.archive", made.id)).archived_at, archived.archived_at)
    refusal = await door.expect_error(BetaEnvironmentArchivedError, "environments.update", made.id, name="late")
    require_equal(refusal.error_code, "environment_archived")
    gone = await door.call("environments.delete", made.id)
    require_equal((gone.id, gone.type), (made.id, "environment_deleted"))
    for method in ("retrieve", "update", "archive", "delete"):
        await door.expect_error(anthropic.NotFoundError, f"environments.{method}", made.id)


@supported("environments.list", note="Newest first.")
@supported("environments.list", "limit", note="Default 20, maximum 100.")
@supported("environments.list", "page", "include_archived")
async def environments_are_listed_in_pages(door: SdkClient) -> None:
    made = [(await door.environment()).id for _ in range(5)]
    await door.call("environments.archive", made[0])
    shown = [row.id for row in await door.list_all("environments.list", limit=2) if row.id in made]
    require_equal(shown, made[:0:-1])
    whole = [row.id for row in await door.list_all("environments.list", limit=100, include_archived=True)]
    require_equal([row for row in whole if row in made], made[::-1])
    pages = await read_pages(door, "environments.list", limit=3, include_archived=True)
    listed = [row.id for page in pages for row in page]
    require_equal([row for row in listed if row in made], made[::-1])
    for fields, field in (({"limit": 0}, "limit"), ({"limit": 101}, "limit"), ({"page": "x"}, "page")):
        await door.expect_error(anthropic.BadRequestError, "environments.list", field=field, **fields)
