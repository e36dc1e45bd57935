"""A turn's environment is opened as its session's configuration defines it, with the documented paths."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.environments.conftest import UID

from footplate.domain.agents.environment_config import Backend, EnvironmentConfig
from footplate.domain.errors import InvalidRequest
from footplate.domain.network.address_policy import AddressPolicy
from footplate.domain.network.command_network_access import Network
from footplate.domain.ports.engine import Environments, OpenRequest
from footplate.environments.factory import SandboxFactory, UnsandboxedFactory
from footplate.environments.sandbox.probe import SandboxProbe
from footplate.lease_clock import lease_clock
from footplate.proxy.allow_list_proxy import AllowListProxy
from footplate.proxy.model_proxy import ModelProxy

OPEN_NETWORK = Backend(name="sandbox", network=Network("open"), can_limit_network=True, supports_allow_lists=True)
NO_NETWORK = replace(OPEN_NETWORK, network=Network())
PROXY_REQUEST = "curl -s -i --noproxy '' -x http://127.0.0.1:3128 http://127.0.0.1:{}/"
INTERFACES = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort | tr '\\n' ' '"


async def run_for_output(environments: Environments, config: EnvironmentConfig, command: str) -> str:
    async with ModelProxy({}) as proxy:
        models = proxy.grant(deadline=lease_clock() + 60)
        try:
            environment = await environments.open_environment(
                OpenRequest(
                    organisation="default",
                    session_id="sesn_1",
                    deadline=lease_clock() + 60,
                    variables={},
                    config=config,
                    models=models,
                )
            )
            try:
                result = await environment.shell(command, timeout=30)
            finally:
                await environment.aclose()
        finally:
            await models.aclose()
    return (result.stdout + result.stderr).decode().strip()


def sandboxed(data: Path, found: SandboxProbe | None, backend: Backend) -> SandboxFactory:
    if found is None:
        pytest.skip("no sandbox can be made on this machine")
    return SandboxFactory(data, backend, found.host, uid=UID, egress=AllowListProxy(AddressPolicy(["127.0.0.1"])))


async def test_an_environment_restricts_the_operators_network(
    tmp_path: Path, sandbox_host: SandboxProbe | None
) -> None:
    environments = sandboxed(tmp_path, sandbox_host, OPEN_NETWORK)
    host_interfaces = sorted(name for _, name in socket.if_nameindex())
    assert (await run_for_output(environments, EnvironmentConfig(), INTERFACES)).split() == host_interfaces
    assert await run_for_output(environments, EnvironmentConfig(limited=True), INTERFACES) == "lo"


async def test_a_network_limit_that_cannot_be_enforced_is_refused(
    tmp_path: Path, sandbox_host: SandboxProbe | None
) -> None:
    limited, listed = EnvironmentConfig(limited=True), EnvironmentConfig(limited=True, hosts=("example.com",))
    backend = Backend(name="unsandboxed", network=Network("open"), can_limit_network=False)
    bare = UnsandboxedFactory(tmp_path, backend)
    with pytest.raises(InvalidRequest, match="cannot limit the network"):
        await run_for_output(bare, limited, "true")
    with pytest.raises(InvalidRequest, match="is not a host that the operator allows"):
        await run_for_output(sandboxed(tmp_path, sandbox_host, NO_NETWORK), listed, "true")


@pytest.mark.parametrize("operator", [Network("open"), Network.allow(["127.0.0.1:80", "127.0.0.1:81"])])
async def test_an_environment_reaches_only_its_listed_hosts(
    tmp_path: Path, sandbox_host: SandboxProbe | None, operator: Network
) -> None:
    environments = sandboxed(tmp_path, sandbox_host, replace(OPEN_NETWORK, network=operator))
    config = EnvironmentConfig(limited=True, hosts=("127.0.0.1:81",))
    assert await run_for_output(environments, config, INTERFACES) == "lo"
    responses = [await run_for_output(environments, config, PROXY_REQUEST.format(port)) for port in (80, 81)]
    assert [response.split()[1] for response in responses] == ["403", "502"]


async def test_the_documented_paths_exist(tmp_path: Path, sandbox_host: SandboxProbe | None) -> None:
    environments = sandboxed(tmp_path, sandbox_host, OPEN_NETWORK)
    command = """
    pwd; echo kept > /mnt/session/outputs/a; cat /mnt/session/outputs/a; ls -A /mnt/session/uploads
    touch /mnt/session/uploads/b 2>/dev/null || echo read-only; touch /workspace/c; ls /workspace
    """
    assert (await run_for_output(environments, EnvironmentConfig(), command)).split() == [
        "/workspace",
        "kept",
        "read-only",
        "c",
    ]
    assert await run_for_output(environments, EnvironmentConfig(), "cat /mnt/session/outputs/a") == "kept"
    state = tmp_path / "workspaces" / "default" / "sesn_1.state"
    assert (state / "outputs" / "a").read_text() == "kept\n"
    assert not any((tmp_path / "leases").iterdir())
