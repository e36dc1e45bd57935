"""Harnesses without a model: `shell` runs a command, and `external` waits for work that a client does."""

from footplate.domain.ports.harness import Harness, HarnessServices
from footplate.harness.steps.external import ExternalHarness
from footplate.harness.steps.shell import ShellHarness


def create_shell(_services: HarnessServices) -> Harness:
    """The factory of the entry point `shell`."""
    return ShellHarness()


def create_external(_services: HarnessServices) -> Harness:
    """The factory of the entry point `external`."""
    return ExternalHarness()
