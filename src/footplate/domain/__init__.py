"""The pure core: nouns, events, decisions and ports. No I/O, no async code of its own, no import of ours."""
