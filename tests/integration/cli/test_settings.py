"""A wrong setting is reported by its name, without a traceback and without its value."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from tests.integration.cli.conftest import Footplate

from footplate.config import Settings


@pytest.mark.parametrize(
    ("variable", "value", "command"),
    [
        ("FOOTPLATE_LEASE", "99", "worker"),
        ("FOOTPLATE_KEEPALIVE", "often", "api"),
        ("FOOTPLATE_KEEPALIVE", "often", "dev"),
        ("FOOTPLATE_KEEPALIVE", "often", "doctor"),
    ],
)
async def test_the_error_names_the_setting(footplate: Footplate, variable: str, value: str, command: str) -> None:
    done = await footplate(command, **{variable: value})
    assert done.code == 1
    assert variable in done.err
    assert value not in done.err
    assert "Traceback" not in done.err
    assert "Correct or unset" in done.err


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "requires exactly one of FOOTPLATE_DOCKER_IMAGE"),
        ({"docker_image": "one", "docker_container": "other"}, "requires exactly one of"),
        ({"docker_image": "one", "docker_host": "tcp://elsewhere:2375"}, "not a local socket"),
        ({"docker_image": "one", "docker_setup": Path("/no/such/script")}, "not a file on this machine"),
    ],
)
def test_inconsistent_docker_settings_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        Settings(environment="docker", **settings)
    assert Settings(environment="docker", docker_image="one").docker_network == "none"


@pytest.mark.requirement("K6")
def test_backends_begin_with_the_default() -> None:
    assert Settings(environment="sandbox").backend_names == ["sandbox"]
    listed = Settings(environment="sandbox", backends="unsandboxed, sandbox, docker", docker_image="one")
    assert listed.backend_names == ["sandbox", "unsandboxed", "docker"]
    with pytest.raises(ValidationError, match="'moon', which is not a backend"):
        Settings(environment="sandbox", backends="moon")
    with pytest.raises(ValidationError, match="requires exactly one of FOOTPLATE_DOCKER_IMAGE"):
        Settings(environment="sandbox", backends="docker")
