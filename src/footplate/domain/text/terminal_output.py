"""Removes control sequences from terminal output that act on more than the screen.

A program prints for the terminal of each person who watches. Such a terminal also obeys sequences that set the
clipboard or the title, speak the terminal's own protocols, print on paper, change the encoding of keys or characters,
or make it type a response. A response would be typed into the session by the person who writes there. Only sequences
that are known to act on the screen stay, such as colours and cursor movements; all others are removed.
"""

import re
from typing import Final

_MAX_PARAMETERS: Final = 256
_STRING_STARTS: Final = b"]PX^_"
"""Second bytes of OSC, DCS, SOS, PM and APC, which contain a text of any length."""
_SCREEN_ESCAPES: Final = b"78DEHMNOclmno|}~=>()*+-./#\\"
"""Second bytes of other sequences that stay. `%` is none of them: without UTF-8, other bytes would start sequences."""
_SCREEN_SEQUENCES: Final = re.compile(
    rb"\[(?:[0-9:;]*[@A-HJ-MPSXZ`abdefgmr]|[0-9]*T|[0-9;]*s|u|0*4[hl]|\?[0-9;]*[hlJK])"
)
"""Control sequences that stay. Others request a report, act on the window or on a printer, or lock the keyboard."""
_VT52_MODE: Final = re.compile(rb"\[\?(?:[0-9]*;)*0*2(?:;[0-9]*)*[hl]")
"""Another grammar of sequences, which this filter does not know."""
_CANCEL: Final = b"\x18"
"""Written in place of a sequence: it ends an unfinished one, so that what remains cannot form another."""
_SPECIAL: Final = re.compile(rb"[\x1b\x05]|\xc2[\x80-\x9f]?")
_CONTROL_SEQUENCE: Final = re.compile(rb"\[([0-?]*[ -/]*)([@-~])?")
_STRING_END: Final = re.compile(rb"[\x07\x18\x1a]|\x1b\\?")


class TerminalOutputFilter:
    """Filters a stream of output. A sequence may be divided between two pieces."""

    def __init__(self) -> None:
        self._carry = b""
        """The start of a sequence whose end is not known yet."""
        self._in_string = False

    def filter(self, data: bytes) -> bytes:
        data, self._carry = self._carry + data, b""
        shown = bytearray()
        position = 0
        while position < len(data):
            position = self._skip_string(data, position) if self._in_string else self._copy(data, position, shown)
        return bytes(shown)

    def _skip_string(self, data: bytes, position: int) -> int:
        end = _STRING_END.search(data, position)
        if end is None:
            return len(data)
        if end.group() == b"\x1b":
            if end.end() == len(data):
                self._carry = b"\x1b"
                return len(data)
            self._in_string = False
            return end.start()  # it starts another sequence
        self._in_string = False
        return end.end()

    def _copy(self, data: bytes, position: int, shown: bytearray) -> int:
        """Copies up to the next sequence, decides on it, and returns the position behind it."""
        found = _SPECIAL.search(data, position)
        if found is None:
            shown += data[position:]
            return len(data)
        start, special = found.span()[0], found.group()
        shown += data[position:start]
        if special == b"\xc2":
            return self._copy_lead_byte(data, start, shown)
        if special != b"\x1b":  # a request for an identification, or a control character of the eight-bit set
            shown += _CANCEL
            return found.end()
        return self._copy_escape(data, start, shown)

    def _copy_lead_byte(self, data: bytes, start: int, shown: bytearray) -> int:
        """Copies the first byte of a two-byte character."""
        if start + 1 == len(data):
            self._carry = b"\xc2"
        else:
            shown += b"\xc2"
        return start + 1

    def _copy_escape(self, data: bytes, start: int, shown: bytearray) -> int:
        following = data[start + 1 : start + 2]
        if not following:
            self._carry = b"\x1b"
            return len(data)
        if not b" " <= following <= b"~":  # a terminal may act on it, and continue the sequence behind it
            shown += _CANCEL
            return start + 1
        if following in _STRING_STARTS:
            shown += _CANCEL
            self._in_string = True
            return start + 2
        if following == b"[":
            return self._copy_control_sequence(data, start, shown)
        shown += data[start : start + 2] if following in _SCREEN_ESCAPES else _CANCEL
        return start + 2

    def _copy_control_sequence(self, data: bytes, start: int, shown: bytearray) -> int:
        sequence = _CONTROL_SEQUENCE.match(data, start + 1)
        assert sequence is not None
        last = sequence.group(2)
        if last is None and sequence.end() == len(data) and len(sequence.group()) <= _MAX_PARAMETERS:
            self._carry = data[start:]
        elif len(sequence.group()) <= _MAX_PARAMETERS and _stays(sequence.group()):
            shown += data[start : sequence.end()]
        else:
            shown += _CANCEL
        return sequence.end()


def _stays(sequence: bytes) -> bool:
    return _SCREEN_SEQUENCES.fullmatch(sequence) is not None and _VT52_MODE.fullmatch(sequence) is None
