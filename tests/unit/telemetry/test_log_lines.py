"""Log lines on an operator's terminal contain no control characters."""

from footplate.telemetry.logging_config import TerminalRenderer


def test_untrusted_text_cannot_control_the_terminal() -> None:
    event = {"event": "not expired\x1b]0;EVIL\x07", "reason": "a\nb\u202e", "exception": "Trace\nValueError: \x9b"}
    line = TerminalRenderer()(None, "info", {**event, "level": "info", "many": ["\x1b"]})
    assert "not expired<U+001B>]0;EVIL<U+0007>" in line
    assert "a<U+000A>b<U+202E>" in line
    assert "Trace\nValueError: <U+009B>" in line
    assert "\x1b]" not in line
    assert not {"\x07", "\x9b", "\u202e"} & {*line}
