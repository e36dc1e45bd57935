"""An environment may only narrow what the operator allows; other settings are refused by name."""

from dataclasses import replace

import pytest

from footplate.domain.agents.environment_config import (
    Backend,
    EnvironmentConfig,
    check_shell_mode,
    check_supported,
    find_missing_backend,
    load_environment_config,
    resolve_backend,
    resolve_network,
    select_backend,
)
from footplate.domain.errors import InvalidRequest
from footplate.domain.json import JsonObject
from footplate.domain.network.command_network_access import Network

SANDBOX = Backend(name="sandbox", network=Network("open"), can_limit_network=True)
LISTS = replace(SANDBOX, supports_allow_lists=True)
LISTED = replace(LISTS, network=Network.allow(["*.a.com", "b.com:81", "10.0.0.1"]))
CLOSED = replace(LISTS, network=Network())
CONTAINERS = replace(LISTS, name="docker", images=frozenset({"tests:1"}), supports_setup=True)
BARE = Backend(name="unsandboxed", network=Network("open"), can_limit_network=False)


@pytest.mark.parametrize(
    ("config", "backend", "field"),
    [
        (EnvironmentConfig(), BARE, None),
        (EnvironmentConfig(limited=True), BARE, "config.networking"),
        (EnvironmentConfig(limited=True), SANDBOX, None),
        (EnvironmentConfig(limited=True), CLOSED, None),
        (EnvironmentConfig(limited=True, hosts=("a.com",)), SANDBOX, "config.networking.allowed_hosts.0"),
        (EnvironmentConfig(limited=True, hosts=("a.com",)), LISTS, None),
        (EnvironmentConfig(limited=True, hosts=("a.com",)), CLOSED, "config.networking.allowed_hosts.0"),
        (EnvironmentConfig(limited=True, registries=True), LISTS, "config.networking.allow_package_managers"),
        (EnvironmentConfig(limited=True, registries=True), CLOSED, "config.networking.allow_package_managers"),
        (
            EnvironmentConfig(limited=True, hosts=("x.a.com", "*.x.a.com", "*.a.com", "b.com:81", "10.0.0.1")),
            LISTED,
            None,
        ),
        *(
            (EnvironmentConfig(limited=True, hosts=("x.a.com", host)), LISTED, "config.networking.allowed_hosts.1")
            for host in ("a.com", "*.com", "*", "b.com", "x.a.com:81", "10.0.0.2", "no host")
        ),
        (EnvironmentConfig(image="tests:1"), LISTS, "config.image"),
        (EnvironmentConfig(image="tests:1", setup="true"), CONTAINERS, None),
        (EnvironmentConfig(image="tests:2"), CONTAINERS, "config.image"),
        (EnvironmentConfig(setup="true"), LISTS, "config.setup"),
        (EnvironmentConfig(setup="true"), BARE, "config.setup"),
        (EnvironmentConfig(packages={"pip": ("x",)}), LISTS, "config.packages.pip"),
        (EnvironmentConfig(packages={"pip": ("x==1", "y[z]>=2")}), CONTAINERS, None),
        (EnvironmentConfig(packages={"npm": ("x", "--global-style")}), CONTAINERS, "config.packages.npm.1"),
        (EnvironmentConfig(packages={"apt": ("x y",)}), CONTAINERS, "config.packages.apt.0"),
    ],
)
def test_a_backend_accepts_only_settings_that_it_enforces(
    config: EnvironmentConfig, backend: Backend, field: str | None
) -> None:
    if field is None:
        check_supported(config, backend)
        return
    with pytest.raises(InvalidRequest) as refusal:
        check_supported(config, backend)
    assert refusal.value.fields["field"] == field


def test_the_network_is_what_both_environment_and_backend_allow() -> None:
    assert resolve_network(EnvironmentConfig(), LISTED) == LISTED.network
    assert resolve_network(EnvironmentConfig(limited=True), LISTED) == Network()
    assert resolve_network(EnvironmentConfig(limited=True, hosts=("x.a.com",)), LISTED) == Network.allow(["x.a.com"])


def test_a_stored_config_is_read_back() -> None:
    assert (
        load_environment_config({})
        == load_environment_config({"networking": {"type": "unrestricted"}})
        == EnvironmentConfig()
    )
    networking: JsonObject = {"type": "limited", "allowed_hosts": ["a.com"], "allow_package_managers": True}
    config = load_environment_config({"networking": networking, "packages": {"pip": ["x==1"], "apt": []}})
    assert config == EnvironmentConfig(limited=True, hosts=("a.com",), registries=True, packages={"pip": ("x==1",)})


@pytest.mark.requirement("K6")
@pytest.mark.requirement("R5")
@pytest.mark.parametrize(
    ("backend", "shell_mode", "default", "expected"),
    [
        ("", "", "sandbox", "sandbox"),
        ("docker", "", "sandbox", "docker"),
        ("", "container", "sandbox", "docker"),
        ("unsandboxed", "container", "sandbox", "docker"),
        ("docker", "host", "unsandboxed", "sandbox"),
        ("", "host", "docker", "sandbox"),
        ("sandbox", "host", "unsandboxed", "sandbox"),
        ("", "host", "unsandboxed", "unsandboxed"),
        ("unsandboxed", "host", "sandbox", "unsandboxed"),
    ],
)
def test_the_shell_mode_never_escapes_the_sandbox(backend: str, shell_mode: str, default: str, expected: str) -> None:
    assert resolve_backend(EnvironmentConfig(backend=backend, shell_mode=shell_mode), default) == expected


@pytest.mark.requirement("K6")
def test_only_backends_that_the_operator_lists_are_selected() -> None:
    assert select_backend(EnvironmentConfig(), [SANDBOX, CONTAINERS]) is SANDBOX
    assert select_backend(EnvironmentConfig(backend="docker"), [SANDBOX, CONTAINERS]) is CONTAINERS
    with pytest.raises(InvalidRequest, match="'unsandboxed' is not one of the backends"):
        select_backend(EnvironmentConfig(backend="unsandboxed"), [SANDBOX, CONTAINERS])
    assert find_missing_backend(EnvironmentConfig(shell_mode="container"), ["sandbox"]) == "docker"
    assert find_missing_backend(EnvironmentConfig(shell_mode="container"), ["sandbox", "docker"]) is None


@pytest.mark.requirement("R5")
def test_a_shell_mode_without_a_backend_is_refused() -> None:
    check_shell_mode(None, [SANDBOX])
    check_shell_mode("host", [BARE])
    check_shell_mode("container", [SANDBOX, CONTAINERS])
    for mode, backends in (("container", [SANDBOX]), ("host", [CONTAINERS])):
        with pytest.raises(InvalidRequest, match="is possible with none of the backends"):
            check_shell_mode(mode, backends)
