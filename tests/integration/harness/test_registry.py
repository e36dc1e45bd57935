"""Harnesses are found by entry point and loaded only when they are needed."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.domain.ports.harness import HarnessServices
from footplate.harness import registry
from footplate.harness.native.harness import NativeHarness
from footplate.harness.registry import HarnessRegistry


@pytest.mark.requirement("S1")
def test_native_is_installed_and_created_once() -> None:
    harnesses = HarnessRegistry(HarnessServices(endpoints={}))
    assert "native" in registry.installed_harnesses()
    registry.ensure_installed("native")
    assert isinstance(harnesses.get("native"), NativeHarness)
    assert harnesses.get("native") is harnesses.get("native")


@pytest.mark.requirement("S1")
def test_an_unknown_name_lists_the_installed_harnesses() -> None:
    with pytest.raises(Permanent) as failed:
        HarnessRegistry(HarnessServices(endpoints={})).get("bogus")
    assert "native" in failed.value.help_text
    with pytest.raises(InvalidRequest) as refused:
        registry.ensure_installed("bogus")
    assert (refused.value.fields["field"], "native" in refused.value.help_text) == ("harness", True)


def test_a_harness_that_cannot_be_imported_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "no_such_package:create", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda **_: [broken])
    with pytest.raises(Permanent, match="no_such_package"):
        HarnessRegistry(HarnessServices(endpoints={})).get("broken")


_PARALLEL_LOADING = """
import asyncio, threading
from footplate.domain.ports.harness import HarnessServices
from footplate.harness.lazy_import import import_in_thread
from footplate.harness.registry import HarnessRegistry

other = threading.Thread(target=lambda: asyncio.run(import_in_thread("footplate.harness.mcp.tool_client")))
other.start()
HarnessRegistry(HarnessServices(endpoints={})).get("claude")
other.join()
import footplate.harness.mcp.tool_client
"""


def test_libraries_are_loaded_one_after_the_other() -> None:
    """Runs in a new process, which has loaded neither. Loaded in parallel, they would break each other permanently."""
    done = subprocess.run([sys.executable, "-c", _PARALLEL_LOADING], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
