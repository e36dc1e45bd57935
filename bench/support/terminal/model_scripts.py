"""Scripts of the model for command line tests: one for each kind of output on a terminal."""

from typing import Final

from bench.support.cluster import Cluster
from footplate.testing import Replies, http_error, replies, sleep, text, thinking, tool

_LINES: Final = (
    "Every sentence here is long enough to be broken, and a terminal that is sixty columns wide has to break it "
    "between two words and never inside of one; größere Wörter and 日本語 count by the columns they take."
)
RESPONSE_TEXTS: Final = (
    _LINES,
    "A list comes next:\n- one\n- two\n\n```\ncode stays as it is\n```",
    "That is all.",
)
LONG: Final = "word by word " * 20
SCRIPTS: Final[dict[str, Replies]] = {
    "looks": replies(
        [
            thinking("First think, then act."),
            text(RESPONSE_TEXTS[0], chunks=20, delay=0.01),
            tool("bash", {"command": "echo hello"}),
        ],
        [
            text(RESPONSE_TEXTS[1]),
            tool("bash", {"command": f"echo {'x' * 300} && false"}),
            tool("read", {"file_path": f"no/{'such/' * 40}file"}),
        ],
        [sleep(1), text(RESPONSE_TEXTS[2])],
    ),
    "hello": replies([text("I say hello."), tool("bash", {"command": "echo hello"})], [text("Done.")]),
    "bad": replies([http_error(400, message="that model does not exist")]),
    "writes": replies([tool("write", {"file_path": "new.txt", "content": "new\n"})], [text("Written.")]),
    "asks": replies([tool("ask_user", {"questions": [{"question": "Which colour?"}]})], [text("Thank you.")]),
    "ask": replies([tool("ask", {"question": "Which one?"})], [text("Thank you.")]),
    "slow": replies([text("This takes long."), tool("bash", {"command": "sleep 60"})], [text("Over.")]),
    "long": replies(
        [text(LONG, chunks=60, delay=0.02), tool("bash", {"command": "sleep 0.5; echo one >> count; cat count"})],
        [text(LONG, chunks=60, delay=0.02)],
    ),
}


async def install_scripts(cluster: Cluster) -> None:
    for name, script in SCRIPTS.items():
        await cluster.model.install(name, script)
