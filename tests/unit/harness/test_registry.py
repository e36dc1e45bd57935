"""Harnesses are found by entry point, and only when asked for."""

from importlib.metadata import EntryPoint

import pytest

from footplate.domain.errors import InvalidRequest, Permanent
from footplate.domain.ports import HarnessServices
from footplate.harness import registry
from footplate.harness.native.harness import NativeHarness
from footplate.harness.registry import Harnesses


def test_native_is_installed_and_created_once() -> None:
    harnesses = Harnesses(HarnessServices(endpoints={}))
    assert "native" in registry.installed()
    registry.check("native")
    assert isinstance(harnesses.get("native"), NativeHarness)
    assert harnesses.get("native") is harnesses.get("native")


def test_an_unknown_name_lists_what_is_installed() -> None:
    with pytest.raises(Permanent) as failed:
        Harnesses(HarnessServices(endpoints={})).get("bogus")
    assert "native" in failed.value.help_text
    with pytest.raises(InvalidRequest) as refused:
        registry.check("bogus")
    assert (refused.value.fields["field"], "native" in refused.value.help_text) == ("harness", True)


def test_a_harness_that_cannot_be_imported_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "no_such_package:create", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda **_: [broken])
    with pytest.raises(Permanent, match="no_such_package"):
        Harnesses(HarnessServices(endpoints={})).get("broken")
