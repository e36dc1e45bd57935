"""The house rules that no linter knows: no file over 450 lines, nothing unfinished, no pattern from outside in `re`."""

import re
import sys
from pathlib import Path
from typing import Final

from bench.regex_check import find_outside_patterns

LONGEST: Final = 450
UNFINISHED: Final = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
SOURCE: Final = Path(__file__).resolve().parent.parent / "src"


def complaints(source: Path) -> list[str]:
    found = []
    for path in sorted(source.rglob("*")):
        if path.suffix not in {".py", ".sql"}:
            continue
        lines = path.read_text().splitlines()
        if len(lines) > LONGEST:
            found.append(f"{path}: {len(lines)} lines; no file in src has more than {LONGEST}")
        found += [
            f"{path}:{number}: unfinished: {line.strip()}"
            for number, line in enumerate(lines, start=1)
            if UNFINISHED.search(line)
        ]
    return found


if __name__ == "__main__":
    problems = [*complaints(SOURCE), *find_outside_patterns(SOURCE)]
    print("\n".join(problems) or "The house is in order.")
    sys.exit(1 if problems else 0)
