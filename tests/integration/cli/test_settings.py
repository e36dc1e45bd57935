"""A setting that is wrong is told by its name, without a trace and without its value."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

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
def test_it_is_named(tmp_path: Path, variable: str, value: str, command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "footplate", command],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), variable: value},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert variable in done.stderr
    assert value not in done.stderr
    assert "Traceback" not in done.stderr
    assert "mend or unset" in done.stderr


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "needs FOOTPLATE_DOCKER_IMAGE"),
        ({"docker_image": "one", "docker_container": "other"}, "not both"),
        ({"docker_image": "one", "docker_host": "tcp://elsewhere:2375"}, "own machine"),
        ({"docker_image": "one", "docker_setup": Path("/no/such/script")}, "no file on this machine"),
    ],
)
def test_docker_settings_that_make_no_whole(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Settings(environment="docker", **given)
    assert Settings(environment="docker", docker_image="one").docker_network == "none"
