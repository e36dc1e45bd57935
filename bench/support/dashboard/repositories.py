"""Creates the git repositories in which the sessions of the content work."""

import subprocess
from pathlib import Path
from typing import Final

_STATS: Final = '''"""Figures for the home page."""


def mean(values):
    return sum(values) / len(values)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle]


def spread(values):
    return max(values) - min(values)
'''
_TESTS: Final = """import unittest

from stats import mean, median, spread


class StatsTest(unittest.TestCase):
    def test_mean(self):
        self.assertEqual(mean([1, 2, 3, 6]), 3)

    def test_median_of_an_odd_count(self):
        self.assertEqual(median([3, 1, 2]), 2)

    def test_median_of_an_even_count(self):
        self.assertEqual(median([1, 2, 3, 4]), 2.5)

    def test_spread(self):
        self.assertEqual(spread([4, 9, 2]), 7)
"""
_README: Final = """# Website

The public website of Northwind. The home page shows figures about teh last thirty days.

## Work on it

1. `python3 build.py` writes the pages into `build/`.
2. `python3 -m unittest` runs the tests.
"""
_BUILD: Final = '''"""Writes the pages into build/."""

PAGES = ("home", "prices", "about", "contact")

for page in PAGES:
    print(f"build/{page}.html")
print(f"{len(PAGES)} pages built")
'''
_BENCHMARK: Final = '''"""Measures how long the figures of the home page take, once per second."""

import random
import time

from stats import median

for number in range(1, 3600):
    values = [random.random() for _ in range(20_000)]
    start = time.perf_counter()
    median(values)
    print(f"run {number}: {(time.perf_counter() - start) * 1000:.1f} ms", flush=True)
    time.sleep(1)
'''
_HOME: Final = """<!doctype html>
<html lang="en">
  <head>
    <title>Northwind</title>
    <link rel="stylesheet" href="../static/site.css">
  </head>
  <body>
    <h1>The last thirty days</h1>
    <p>Orders: {{ orders }}. Median delivery time: {{ median_days }} days.</p>
  </body>
</html>
"""
_FILES: Final = {
    "website": {
        "README.md": _README,
        "stats.py": _STATS,
        "test_stats.py": _TESTS,
        "build.py": _BUILD,
        "benchmark.py": _BENCHMARK,
        "templates/home.html": _HOME,
        "static/site.css": "body {\n  font: 16px/1.5 system-ui;\n  margin: 2rem auto;\n  max-width: 60rem;\n}\n",
        "docs/deploy.md": "# Deploy\n\nPush to `release`. The pipeline publishes `build/` within two minutes.\n",
        ".gitignore": "__pycache__/\nbuild/\n",
    },
    "billing": {
        "README.md": "# Billing\n\nInvoices, payments and reminders.\n",
        "invoices.py": "def total(lines):\n    return sum(line.quantity * line.price for line in lines)\n",
        "migrations/0041_reminders.sql": "alter table invoices add column reminded_at timestamptz;\n",
        ".gitignore": "__pycache__/\n",
    },
    "mobile-app": {
        "README.md": "# Mobile app\n\nThe app for Android and iOS.\n",
        "package.json": '{"name": "mobile-app", "version": "4.2.0", "private": true}\n',
    },
}
REPOSITORIES: Final = tuple(_FILES)
_IDENTITY: Final = ("-c", "user.name=Ada Lindqvist", "-c", "user.email=ada@northwind.example")


def create_repositories(directory: Path) -> None:
    """Creates each repository with one commit. One test of the website fails."""
    for name, files in _FILES.items():
        repository = directory / name
        for path, content in files.items():
            target = repository / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)
        for arguments in (
            ("init", "-q", "-b", "main"),
            ("add", "."),
            (*_IDENTITY, "commit", "-qm", "Import"),
            ("branch", "release"),
        ):
            subprocess.run(("git", "-C", str(repository), *arguments), check=True)
