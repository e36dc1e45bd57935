"""The house rules find what they are there to find."""

from pathlib import Path

from bench import house, regex_check


def test_long_and_unfinished_files_are_found(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("x = 1\n" * (house.LONGEST + 1))
    (tmp_path / "open.py").write_text("# " + "TODO: later\n")
    (tmp_path / "fine.py").write_text("x = 1\n" * house.LONGEST)
    assert [line.split(":")[0].rpartition("/")[2] for line in house.complaints(tmp_path)] == ["long.py", "open.py"]


def test_patterns_that_may_come_from_outside_are_found(tmp_path: Path) -> None:
    (tmp_path / "safe.py").write_text(
        'import re\nA = "x"\nre.compile(rf"{A}+")\nre.sub(r"a", "b", text)\nre.compile(re.escape(text) + "$")\n'
    )
    assert regex_check.find_outside_patterns(tmp_path) == []
    (tmp_path / "open.py").write_text("import re\nre.compile(text)\nfnmatchcase(name, pattern)\nre.search(f'{x}', y)\n")
    lines = [each.split(":")[1] for each in regex_check.find_outside_patterns(tmp_path)]
    assert lines == ["2", "3", "4"]
