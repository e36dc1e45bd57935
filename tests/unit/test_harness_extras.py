"""An error of a harness names the extra of this package that is missing."""

from importlib.metadata import EntryPoint

from footplate.harness.registry import GROUP, missing_extra

MISSING = ModuleNotFoundError("No module named 'example'", name="example")


def test_the_missing_extra_of_a_harness_exists() -> None:
    claude = EntryPoint("claude", "footplate.harness.claude:create", GROUP)
    native = EntryPoint("native", "footplate.harness.native:create", GROUP)
    other = EntryPoint("other", "example.harness:create", GROUP)
    assert missing_extra(claude, MISSING) == "footplate[claude]"
    assert missing_extra(native, MISSING) == "footplate[server]"
    assert missing_extra(other, MISSING) == ""
    assert missing_extra(claude, ImportError("broken")) == ""
