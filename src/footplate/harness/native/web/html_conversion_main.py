"""A program that reads HTML from standard input, and writes its title and Markdown text as JSON to standard output.

It is run by its path and imports no other Footplate module, so that it starts in less than a tenth of a second.
"""

import html
import json
import re
import resource
import sys
from typing import Final

from html_to_markdown import ConversionOptions, convert

_CPU_SECONDS: Final = 15
_MEMORY_BYTES: Final = 2 * 1024**3
_MAX_CHARACTERS: Final = 2_000_000
_TITLE: Final = re.compile(r"<title[^>]*>(.{0,1000}?)</title>", re.IGNORECASE | re.DOTALL)


def main() -> None:
    # The CPU limit also ends this process if its parent has died.
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    page = sys.stdin.buffer.read().decode("utf-8")
    options = ConversionOptions(base_url=sys.argv[1], compact_tables=True, extract_metadata=False, skip_images=True)
    text = convert(page, options).content or ""
    title = _TITLE.search(page)
    converted = {"title": " ".join(html.unescape(title[1]).split()) if title else "", "text": text[:_MAX_CHARACTERS]}
    sys.stdout.write(json.dumps(converted))


if __name__ == "__main__":
    main()
