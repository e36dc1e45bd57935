"""Packages of an environment are installed by the shell, before the setup script."""

import subprocess
from pathlib import Path

from footplate.domain.agents.environment_config import EnvironmentConfig, build_setup_script


def test_packages_are_installed_before_the_script_and_stop_at_the_first_failure(tmp_path: Path) -> None:
    packages = {"pip": ("x==1", "y;rm"), "apt": ("a",), "go": ("g.dev/x@v1", "$h")}
    config = EnvironmentConfig(packages=packages, setup="echo script")
    for name in ("apt-get", "go", "pip"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\necho "{name}:$#:$*"\n')
        program.chmod(0o755)
    ran = subprocess.run(
        ["/bin/sh", "-c", build_setup_script(config)],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines() == [
        *("apt-get:1:update", "apt-get:3:install -y a", "go:2:install g.dev/x@v1", "go:2:install $h"),
        *("pip:3:install x==1 y;rm", "script"),
    ]
    (tmp_path / "go").write_text("#!/bin/sh\nexit 1\n")
    failed = subprocess.run(
        ["/bin/sh", "-c", build_setup_script(config)],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 1
    assert "script" not in failed.stdout
    assert build_setup_script(EnvironmentConfig()) == ""
    assert build_setup_script(EnvironmentConfig(setup="a\nb")) == "a\nb"
