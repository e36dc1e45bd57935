"""The project's own code rules find violations."""

from pathlib import Path

import pytest
from bench import code_rules, regex_check, vocabulary


def test_long_and_unfinished_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("x = 1\n" * (code_rules.MAX_LINES + 1))
    (tmp_path / "open.py").write_text("# " + "TODO: later\n")
    (tmp_path / "fine.py").write_text("x = 1\n" * code_rules.MAX_LINES)
    assert [line.split(":")[0].rpartition("/")[2] for line in code_rules.find_long_files(tmp_path)] == ["long.py"]
    assert [line.split(":")[0].rpartition("/")[2] for line in code_rules.find_unfinished_code(tmp_path)] == ["open.py"]


def test_crowded_packages_are_found(tmp_path: Path) -> None:
    for package, modules in (("large", 16), ("small", 15)):
        (tmp_path / "footplate" / package).mkdir(parents=True)
        for number in range(modules):
            (tmp_path / "footplate" / package / f"module_{number}.py").write_text("")
    assert [line.split(":")[0].rpartition("/")[2] for line in code_rules.find_crowded_packages(tmp_path)] == ["large"]


def test_input_and_output_in_the_domain_are_found(tmp_path: Path) -> None:
    domain = tmp_path / "footplate" / "domain"
    domain.mkdir(parents=True)
    for number, code in enumerate(("import socket", "from os.path import join", "print(1)", "import json, re")):
        (domain / f"module_{number}.py").write_text(code)
    found = [line.rpartition(" ")[2] for line in code_rules.find_domain_io(tmp_path)]
    assert found == ["socket", "os.path", "print()"]


@pytest.mark.parametrize(
    "code",
    [
        "def answer() -> None: ...",
        "class KeptTree: ...",
        "def load(nobody: int) -> None: ...",
        "_MOST_TOLD = 1",
        "self.left = 1",
        "import os as word",
        "try: ...\nexcept OSError as said: ...",
    ],
)
def test_banned_terms_are_found_in_identifiers(tmp_path: Path, code: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "module.py").write_text(code)
    assert len(vocabulary.find_banned_terms(tmp_path, exempt={})) == 1


def test_banned_terms_are_found_in_file_names_and_exemptions_must_be_used(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_leaving.py").write_text("keyword = leftover = 1")
    assert len(vocabulary.find_banned_terms(tmp_path, exempt={})) == 1
    assert vocabulary.find_banned_terms(tmp_path, exempt={"test_leaving": "a reason"}) == []
    assert len(vocabulary.find_banned_terms(tmp_path, exempt={"test_leaving": "a reason", "unused": "a reason"})) == 1


def test_patterns_that_may_come_from_outside_are_found(tmp_path: Path) -> None:
    (tmp_path / "safe.py").write_text(
        'import re\nA = "x"\nre.compile(rf"{A}+")\nre.sub(r"a", "b", text)\nre.compile(re.escape(text) + "$")\n'
    )
    assert regex_check.find_outside_patterns(tmp_path) == []
    (tmp_path / "open.py").write_text("import re\nre.compile(text)\nfnmatchcase(name, pattern)\nre.search(f'{x}', y)\n")
    lines = [each.split(":")[1] for each in regex_check.find_outside_patterns(tmp_path)]
    assert lines == ["2", "3", "4"]
