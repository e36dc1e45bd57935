"""The output of `export -p` is parsed as bash and plain `sh` print it."""

import pytest

from footplate.environments.processes.exported_variables import parse_exported_variables

pytestmark = pytest.mark.requirement("K7")


def test_output_of_bash() -> None:
    printed = (
        b'declare -x EMPTY=""\ndeclare -x NO_VALUE\ndeclare -rx READ_ONLY="a b"\n'
        b'declare -x QUOTES="it\'s \\"a\\" \\$HOME \\`x\\` \\\\"\n'
        b"declare -x CONTROL=$'tab\\tescape\\E bell\\a it\\'s \\001\\\\'\n"
        b'declare -x LINES="a\ndeclare -x EVIL=\\"1\\"\nb"\n'
        b'declare -ax ARRAY=([0]="x")\nexport POSIX="yes"\nnonsense\n'
    )
    assert parse_exported_variables(printed) == {
        b"EMPTY": b"",
        b"READ_ONLY": b"a b",
        b"QUOTES": b'it\'s "a" $HOME `x` \\',
        b"CONTROL": b"tab\tescape\x1b bell\a it's \x01\\",
        b"LINES": b'a\ndeclare -x EVIL="1"\nb',
        b"POSIX": b"yes",
    }


def test_output_of_a_plain_shell() -> None:
    printed = b"export A='it'\"'\"'s\nx'\nexport B='it'\\''s $x'\nexport C=plain\nexport D\n"
    assert parse_exported_variables(printed) == {b"A": b"it's\nx", b"B": b"it's $x", b"C": b"plain"}


def test_hostile_output_takes_no_time() -> None:
    assert parse_exported_variables(b'export A="' + b'\\"a' * 500_000) == {}
