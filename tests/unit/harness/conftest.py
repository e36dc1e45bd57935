"""Fixtures of the harness tests."""

from pathlib import Path

import pytest

from .twins import LocalEnvironment, World


@pytest.fixture
def environment(tmp_path: Path) -> LocalEnvironment:
    return LocalEnvironment(tmp_path)


@pytest.fixture
def world(environment: LocalEnvironment) -> World:
    return World(environment)
