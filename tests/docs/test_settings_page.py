"""docs/settings.md matches the code: it lists every setting with its names and its default."""

import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, TypeAdapter
from pydantic.fields import FieldInfo

from footplate.config import Settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "settings.md").read_text()
_VARIABLE = re.compile(r"\bFOOTPLATE_[A-Z_]*[A-Z]\b")
_ROW = re.compile(r"^\| (`[A-Z][^|]*`) \| ([^|]+) \| [^|]+ \| [^|]+ \|$", re.MULTILINE)
_VALUE = re.compile(r"`([^`]+)`")


def _rows() -> dict[frozenset[str], str]:
    """Returns the cell with the default by the names of the setting, for tables with the column "used by"."""
    return {frozenset(_VALUE.findall(names)): default for names, default in _ROW.findall(PAGE)}


def _names(name: str, field: FieldInfo) -> frozenset[str]:
    alias = field.validation_alias
    if alias is None:
        return frozenset({f"FOOTPLATE_{name.upper()}"})
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return frozenset(str(choice).upper() for choice in choices)


def _parse(text: str, field: FieldInfo) -> Any:
    kind: Any = field.annotation
    for item in field.metadata:
        kind = Annotated[kind, item]
    return TypeAdapter(kind).validate_python(text)


def test_the_page_lists_every_setting_and_no_other() -> None:
    assert set(_rows()) == {_names(name, field) for name, field in Settings.model_fields.items()}


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_default_on_the_page_is_the_real_one(name: str) -> None:
    field = Settings.model_fields[name]
    cell = _rows()[_names(name, field)]
    if value := _VALUE.fullmatch(cell):
        assert _parse(value[1], field) == field.default
    else:  # a description: there is no fixed value to write
        assert field.default_factory is not None or field.default in (None, "")


def test_every_variable_in_the_code_and_on_other_pages_is_listed() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    named = {name for path in sources for name in _VARIABLE.findall(path.read_text())}
    assert named - set(_VARIABLE.findall(PAGE)) == set()
