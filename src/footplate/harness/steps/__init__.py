"""Harnesses without a model: `shell` runs a command, `external` waits for work that a client does, `parallel` runs
child sessions, `delivery` merges or pushes the session's work, and `terminal` gives a person a shell.
"""

from footplate.domain.ports.harness import Harness, HarnessServices
from footplate.harness.steps.delivery import DeliveryHarness
from footplate.harness.steps.external import ExternalHarness
from footplate.harness.steps.parallel import ParallelHarness
from footplate.harness.steps.shell import ShellHarness
from footplate.harness.steps.terminal import TerminalHarness


def create_shell(_services: HarnessServices) -> Harness:
    """The factory of the entry point `shell`."""
    return ShellHarness()


def create_external(_services: HarnessServices) -> Harness:
    """The factory of the entry point `external`."""
    return ExternalHarness()


def create_delivery(_services: HarnessServices) -> Harness:
    """The factory of the entry point `delivery`."""
    return DeliveryHarness()


def create_parallel(_services: HarnessServices) -> Harness:
    """The factory of the entry point `parallel`."""
    return ParallelHarness()


def create_terminal(_services: HarnessServices) -> Harness:
    """The factory of the entry point `terminal`."""
    return TerminalHarness()
