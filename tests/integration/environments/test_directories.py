"""Where a session works: in its own directory, or in the one that it names where that is allowed."""

import json
from pathlib import Path

import pytest

from footplate.domain.errors import InvalidRequest
from footplate.environments.directories import working_directory


def _variables(directory: object) -> dict[str, str]:
    return {"FOOTPLATE_CONTEXT": json.dumps({"directory": directory})}


def test_its_own_is_made(tmp_path: Path) -> None:
    own = tmp_path / "organisation" / "session"
    assert working_directory(own, {"FOOTPLATE_CONTEXT": "{}"}, may_be_named=True) == own
    assert own.is_dir()


def test_a_named_one_counts_only_where_it_is_allowed(tmp_path: Path) -> None:
    own, named = tmp_path / "own", tmp_path / "named"
    named.mkdir()
    assert working_directory(own, _variables(str(named)), may_be_named=True) == named
    assert working_directory(own, _variables(str(named)), may_be_named=False) == own
    assert own.is_dir()


@pytest.mark.parametrize("named", ["relative", "/no/such/directory"])
def test_one_that_is_not_there_is_refused(tmp_path: Path, named: str) -> None:
    with pytest.raises(InvalidRequest, match="is no directory") as caught:
        working_directory(tmp_path / "own", _variables(named), may_be_named=True)
    assert caught.value.help_text
