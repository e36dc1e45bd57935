"""The sessions of the content: what each is asked, what its scripted model does, and in which state it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from footplate.testing.model_scripts import Replies, replies
from footplate.testing.reply_steps import Step, hang, http_error, text, thinking, tool, usage

MEDIAN: Final = "Make the tests pass"
SORTED_ONCE: Final = "Speed up the median: sort once"
SELECTED: Final = "Speed up the median: without sorting"
INVESTIGATION: Final = "Find out why the build is slow"
RELEASE_NOTES: Final = "Write the release notes for 4.2"
BACKEND: Final = "Render the invoices as PDF"
"""Its next turn needs a backend that no worker offers."""
HELPER: Final = "content-helper"
HELPER_REPLIES: Final = replies(
    [text("`mean` and `spread` fail for an empty list. The home page calls both before the first order of a month.")]
)
FORKED_AFTER: Final = 6
"""The model's messages in the session that is forked."""

_FIX: Final = (
    "sed -i 's|    return ordered.middle.|    if len(ordered) % 2:\\n        return ordered[middle]\\n"
    "    return (ordered[middle - 1] + ordered[middle]) / 2|' stats.py"
)
_SORT_ONCE: Final = (
    "sed -i 's|= sorted(values)|= values if is_sorted(values) else sorted(values)|' stats.py\n"
    "sed -i 's|^def mean|def is_sorted(values):\\n    return all(a <= b for a, b in zip(values, values[1:]))"
    "\\n\\n\\ndef mean|' stats.py"
)
_SELECT: Final = """sed -i 's|= sorted(values)|= nsmallest(len(values) // 2 + 1, values)|' stats.py
sed -i 's|^def mean|from heapq import nsmallest\\n\\n\\ndef mean|' stats.py"""
_REPORT: Final = """python3 - <<'END'
import os
from pathlib import Path

outputs = Path(os.environ["FOOTPLATE_OUTPUTS"])
(outputs / "test-report.md").write_text('''# Tests of the website

| test | before | after |
|---|---|---|
| mean | passed | passed |
| median of an odd count | passed | passed |
| median of an even count | failed | passed |
| spread | passed | passed |
''')
(outputs / "durations.csv").write_text("test,milliseconds\\nmean,1\\nmedian,2\\nspread,1\\n")
END"""
_MARKDOWN: Final = """The median of an even count is **wrong**: it returns the upper of the two middle values.

| input | expected | actual |
|---|---|---|
| `[1, 2, 3, 4]` | 2.5 | 3 |

```python
return (ordered[middle - 1] + ordered[middle]) / 2
```

1. Fix `median` in `stats.py`.
2. Run the tests again.
"""
_BENCHMARK_RUNS: Final = 60
_FAILURE: Final = "max_tokens: 96000 is more than this model supports (64000)"
_ARABIC_TITLE: Final = "تحديث نصوص الصفحة الرئيسية"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSession:
    title: str
    prompt: str | None
    """None: nothing is sent."""
    script: Replies
    minutes: int
    """How long ago it was created."""
    agent: str = "website-engineer"
    project: str | None = "website"
    owner: str | None = None
    """The member who starts it; the administrator if it is None."""
    further_prompts: Sequence[str] = ()
    is_paused: bool = False
    expected: frozenset[str] = frozenset({"completed"})
    """The activity states in which it is finished as content."""
    marked: bool = False
    """Whether the prompt names the script. Otherwise the script has the name of the session."""


def bash(command: str) -> Step:
    return tool("bash", {"command": command})


def _question() -> Step:
    options = [
        {"label": "PostgreSQL 16", "description": "What production runs today."},
        {"label": "PostgreSQL 17", "description": "Incremental backups, and a faster vacuum."},
    ]
    question = {
        "question": "Which database version should the schema target?",
        "header": "Database",
        "options": options,
    }
    return tool("ask_user", {"questions": [question]})


def build_sessions() -> list[ContentSession]:
    return [*_finished(), *_waiting(), *_active()]


def _fix_steps() -> list[list[Step]]:
    return [
        [
            thinking("One test fails. I read it first, and then the function that it calls."),
            bash("python3 -m unittest -v"),
            usage(11_400, 240, cache_read=2_100),
        ],
        [text(_MARKDOWN), bash(_FIX), usage(14_200, 680, cache_read=18_000)],
        [bash("python3 -m unittest -v"), usage(15_100, 90, cache_read=31_000)],
    ]


def _finished() -> list[ContentSession]:
    summary = "All four tests pass. The median of an even count is now the mean of the two middle values."
    return [
        ContentSession(
            title=MEDIAN,
            prompt="One test fails since yesterday. Find the cause, fix it, and run the tests again.",
            script=replies(
                *_fix_steps(),
                [bash(_REPORT), usage(15_400, 310, cache_read=31_000)],
                [text(summary), usage(15_600, 120, cache_read=31_000)],
                [
                    text("`median` returned the upper of the two middle values when the count was even."),
                    usage(16_000, 60),
                ],
            ),
            further_prompts=("Explain in one sentence what was wrong.",),
            minutes=52,
        ),
        ContentSession(
            title=SORTED_ONCE,
            prompt="Make the figures of the home page faster. Sort the values only once.",
            script=replies(
                [
                    bash(_SORT_ONCE),
                    usage(12_000, 310),
                ],
                [bash("python3 -m unittest -q 2>&1 | tail -3"), usage(12_600, 60)],
                [
                    text("Sorted values are no longer sorted again: 38 % less time for the home page."),
                    usage(12_900, 80),
                ],
            ),
            owner="Jonas Weber",
            minutes=190,
        ),
        ContentSession(
            title=SELECTED,
            prompt="Make the figures of the home page faster. Find the middle without sorting everything.",
            script=replies(
                [
                    bash(_SELECT),
                    usage(18_000, 420),
                ],
                [bash("python3 -m unittest -q 2>&1 | tail -3"), usage(19_000, 60)],
                [text("Half of the sorting is saved, but short lists take longer than before."), usage(19_400, 90)],
            ),
            owner="Jonas Weber",
            minutes=188,
        ),
        ContentSession(
            title="Correct a typo in the README",
            prompt="There is a typo in the first paragraph of the README.",
            script=replies(
                [bash("sed -i 's/teh/the/' README.md"), usage(6_100, 70)],
                [text("Corrected: `teh` is now `the`."), usage(6_300, 30)],
            ),
            agent="release-manager",
            minutes=1_460,
        ),
        ContentSession(
            title="Review the figures of the home page",
            prompt="Let a helper review stats.py, and summarise what it finds.",
            script=replies(
                [
                    tool(
                        "subagent",
                        {
                            "description": "Review stats.py",
                            "prompt": f"Review stats.py [[script:{HELPER}]]",
                            "subagent_type": "helper",
                        },
                    ),
                    usage(8_000, 200),
                ],
                [text("The helper found one problem: `mean` fails for an empty list."), usage(8_800, 60)],
            ),
            expected=frozenset({"completed", "failed"}),
            owner="Priya Raman",
            minutes=1_530,
            marked=True,
        ),
        ContentSession(
            title=_ARABIC_TITLE,
            prompt="حدّث عنوان الصفحة الرئيسية",
            script=replies([text("تم تحديث العنوان."), usage(5_200, 40)]),
            owner="Tomás Herrera",
            minutes=2_900,
        ),
        ContentSession(
            title="Answer the support ticket about reset e-mails that arrive twice for accounts created before 2024",
            prompt="Find the cause of the double e-mails, and draft an answer for the customer.",
            script=replies(
                [bash("grep -rn reminded_at migrations"), usage(21_000, 150)],
                [
                    text("Accounts from before 2024 have two rows in `reminders`. A draft of the answer is below."),
                    usage(24_000, 400),
                ],
            ),
            agent="billing-engineer",
            project="billing",
            owner="Priya Raman",
            minutes=3_100,
        ),
        ContentSession(
            title=INVESTIGATION,
            prompt="The build takes four minutes since Monday. Find out why.",
            script=replies(
                [bash("python3 build.py"), usage(9_000, 80)],
                [text("The pages are built one after the other. Each waits for the prices."), usage(9_400, 90)],
            ),
            minutes=260,
        ),
        ContentSession(
            title=BACKEND,
            prompt=None,
            script=replies([text("")]),
            agent="billing-engineer",
            project="billing",
            expected=frozenset({"new"}),
            minutes=31,
        ),
    ]


def _waiting() -> list[ContentSession]:
    approval = frozenset({"waiting_for_approval"})
    return [
        ContentSession(
            title="Publish the median fix",
            prompt="Fix the median, and push the branch.",
            script=replies(
                *_fix_steps(),
                [
                    text("All tests pass. I push the branch, so that the pipeline can build it."),
                    bash("git push origin fix/median"),
                    usage(15_900, 60),
                ],
            ),
            expected=approval,
            minutes=64,
        ),
        ContentSession(
            title="Clean up after the build",
            prompt="Remove what the build wrote, and build again.",
            script=replies(
                [
                    text("I remove the directories that `build.py` writes."),
                    bash("rm -rf build/ .cache/pages/"),
                    usage(7_200, 60),
                ]
            ),
            expected=approval,
            owner="Tomás Herrera",
            minutes=21,
        ),
        ContentSession(
            title="Add reminders to invoices",
            prompt="Run the new migration on the staging database.",
            script=replies(
                [
                    text("The migration adds one column. I run it on staging."),
                    bash('psql "$STAGING_URL" -f migrations/0041_reminders.sql'),
                    usage(13_000, 110),
                ]
            ),
            agent="billing-engineer",
            project="billing",
            expected=approval,
            owner="Priya Raman",
            minutes=14,
        ),
        ContentSession(
            title="Upgrade the database schema",
            prompt="Upgrade the schema to the version that we run.",
            script=replies(
                [
                    text("The schema can target either version. The difference is in the backups."),
                    _question(),
                    usage(16_000, 140),
                ],
                [text("The schema is upgraded.")],
            ),
            agent="billing-engineer",
            project="billing",
            expected=frozenset({"waiting_for_answer"}),
            minutes=47,
        ),
        ContentSession(
            title="Update the dependencies",
            prompt="Update all dependencies to their newest versions, and run the tests.",
            script=replies([http_error(400, message=_FAILURE)]),
            agent="release-manager",
            project="mobile-app",
            expected=frozenset({"failed"}),
            minutes=33,
        ),
    ]


def _active() -> list[ContentSession]:
    return [
        ContentSession(
            title="Split the templates of the home page",
            prompt="The template of the home page is too long. Split it without changing the page.",
            script=replies(
                [thinking("The template has three parts."), bash("ls -R templates static"), usage(9_800, 130)],
                [
                    text(
                        "I split the template into a header, the figures and a footer. The header comes first. ",
                        chunks=3,
                    ),
                    hang(),
                ],
            ),
            expected=frozenset({"running"}),
            minutes=4,
        ),
        ContentSession(
            title="Measure the figures for an hour",
            prompt="Run the benchmark for an hour, and report the slowest runs.",
            # A command may run for two minutes; the model then starts it again.
            script=replies(
                [text("This takes an hour."), bash("python3 benchmark.py"), usage(6_900, 50)],
                *([bash("python3 benchmark.py")] for _ in range(_BENCHMARK_RUNS)),
            ),
            expected=frozenset({"running"}),
            minutes=9,
        ),
        ContentSession(
            title=RELEASE_NOTES,
            prompt="Write the release notes for version 4.2.",
            script=replies(
                [text("Here are the release notes."), usage(19_000, 900)],
                [text("Voici les notes de version.")],
                [text("They are sent.")],
            ),
            further_prompts=("Translate them into French", "Send them to the mailing list"),
            agent="release-manager",
            project="mobile-app",
            is_paused=True,
            expected=frozenset({"paused", "queued", "completed"}),
            minutes=75,
        ),
    ]
