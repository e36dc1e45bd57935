"""What a person's terminal receives, and what is recorded."""

import json

import pytest

from footplate.domain.text.asciicast import AsciicastRecording
from footplate.domain.text.terminal_output import TerminalOutputFilter

HARMLESS = [
    b"plain text\r\n",
    b"\x1b[1;31mred\x1b[0m",
    b"\x1b[?1049h\x1b[2J\x1b[10;5Hfull screen\x1b[?25l",
    b"\x1b(B\x1b7\x1b8\x1bM",
    "caf\u00e9 \u4f60\u597d \u00b7".encode(),
    b"\x1b[38;2;1;2;3mtrue colour\x1b[m\t\b\x07",
    b"\x1b[?1000;1006h\x1b[?2004l\x1b[2;20r\x1b[s\x1b[u\x1b[4h\x1b[4:3munderlined\x1b[5X\x1b=\x1b>",
]
REMOVED = [
    b"\x1b]52;c;cm0gLXJmIC8=\x07",
    b"\x1b]0;title\x1b\\",
    b"\x1b]133;D;0\x07",
    b"\x1bP+q544e\x1b\\",
    b"\x1b_Gf=24;AAAA\x1b\\",
    b"\x1b^private\x1b\\",
    b"\x1bXstart\x1b\\",
    b"\x1b[6n",
    b"\x1b[c",
    b"\x1b[>0c",
    b"\x1b[21t",
    b"\x1b[?1;2$p",
    b"\x1bZ",
    b"\x05",
    b"\xc2\x9d52;c;AAAA",
    b"\xc2\x9b6n",
    b"\x1b\x1b[c",
    b"\x1b\xc2\x9b6n",
    b"\x1b\xc2\x9d52;c;AAAA",
    b"\x1b%@\x9b6n",
    b"\x1b[1;1;1;1;9;9*y",
    b"\x1b[?u",
    b"\x1b[>1u",
    b"\x1b[>4;2m",
    b"\x1b[1$w",
    b"\x1b[#|",
    b"\x1b[?4m",
    b"\x1b[5i",
    b"\x1b[?1;1;0S",
    b"\x1b[1;1;1;1;1T",
    b"\x1b[?25;02l",
    b"\x1b[2h",
]


@pytest.mark.parametrize("data", HARMLESS)
def test_output_for_the_screen_stays_however_it_is_divided(data: bytes) -> None:
    for at in range(len(data) + 1):
        found = TerminalOutputFilter()
        assert found.filter(data[:at]) + found.filter(data[at:]) + found.filter(b"") == data


@pytest.mark.parametrize("data", REMOVED)
def test_sequences_that_act_on_more_than_the_screen_are_removed(data: bytes) -> None:
    for at in range(len(data) + 1):
        found = TerminalOutputFilter()
        shown = found.filter(b"a" + data[:at]) + found.filter(data[at:] + b"b\x1b[m")
        assert shown.startswith(b"a")
        assert shown.endswith(b"b\x1b[m")
        assert b"\x1b" not in shown[:-3]
        assert b"\xc2" not in shown
        assert b"\x05" not in shown


def test_what_remains_forms_no_other_sequence() -> None:
    assert TerminalOutputFilter().filter(b"\x1b\x1b[c]52;c;AAAA\x07") == b"\x18\x18]52;c;AAAA\x07"
    assert TerminalOutputFilter().filter(b"\x1b\n[c\x1b\x7f[6n\x1b\x00]52;c;AAAA\x07") == (
        b"\x18\n[c\x18\x7f[6n\x18\x00]52;c;AAAA\x07"
    )  # a terminal obeys a sequence with control characters in it
    endless = TerminalOutputFilter()
    assert endless.filter(b"\x1b]52;c;" + b"A" * 100_000) == b"\x18"
    assert endless.filter(b"A" * 10 + b"\x07shown") == b"shown"
    assert TerminalOutputFilter().filter(b"\x1b[" + b"1;" * 1000 + b"m") == b"\x18"


def test_a_recording_is_an_asciicast_with_a_limit() -> None:
    recording = AsciicastRecording(columns=80, rows=24, started_at=1_700_000_000, max_bytes=300)
    recording.add_output(0.5, b"caf\xc3")
    recording.add_output(0.75, b"\xa9")
    recording.add_size(1.0, 100, 30)
    for number in range(20):
        recording.add_output(2.0 + number, b"more output")
    header, *lines = [json.loads(line) for line in b"".join(recording.pieces()).splitlines()]
    assert header == {"version": 2, "width": 80, "height": 24, "timestamp": 1_700_000_000}
    assert lines[:3] == [[0.5, "o", "caf"], [0.75, "o", "\u00e9"], [1.0, "r", "100x30"]]
    assert lines[-1][1:] == ["m", "The recording is full."]
    assert recording.size < 400
