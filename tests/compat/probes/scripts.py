"""Scripted model replies for the probes."""

from typing import Final

from footplate.testing import Replies, rate_limited, replies, reply, text, thinking, tool, usage

SCRIPTS: Final[dict[str, Replies]] = {
    "probe-hello": replies([text("Hello there."), usage(input_tokens=30, output_tokens=12)]),
    "probe-work": replies(
        [thinking("A file is wanted."), text("I look."), tool("bash", {"command": "echo hello"})],
        [text("hello it is.")],
    ),
    "probe-outputs": replies(
        [tool("bash", {"command": 'cd "$FOOTPLATE_OUTPUTS" && mkdir -p sub && echo 1 > report.csv && echo 2 > sub/b'})],
        [text("Done.")],
    ),
    "probe-outputs-changed": replies(
        [tool("bash", {"command": 'cd "$FOOTPLATE_OUTPUTS" && echo 3 > report.csv && rm sub/b'})], [text("Changed.")]
    ),
    "probe-given": replies(
        [tool("bash", {"command": "cat given/one.txt .footplate/uploads/*/two.txt"})], [text("Both are there.")]
    ),
    "probe-weather": replies([tool("get_weather", {"city": "Oslo"})], [text("Snow in Oslo.")]),
    "probe-note": replies([tool("mcp__notes__note", {"line": "one"})], [text("Noted.")]),
    "probe-ask": replies(
        [tool("Agent", {"description": "look", "prompt": "Look. [[script:probe-look]]", "subagent_type": "scout"})],
        [text("It looked.")],
    ),
    "probe-look": replies([text("On it."), tool("Bash", {"command": "echo hello"})], [text("All quiet.")]),
    "probe-ask-native": replies(
        [tool("Agent", {"prompt": "Look. [[script:probe-look-native]]", "subagent_type": "scout"})],
        [text("It looked.")],
    ),
    "probe-look-native": replies([text("On it."), tool("bash", {"command": "echo hello"})], [text("All quiet.")]),
    "probe-slow": replies([text("word after word " * 40, chunks=400, delay=0.1)]),
    "probe-limited": replies(reply(text("At last."), first_attempts=[[rate_limited(retry_after=0.2)]])),
}
