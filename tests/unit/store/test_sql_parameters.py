"""Statements with many parameters name them, and every call gives a statement exactly its parameters."""

from typing import Any

import pytest
from bench.support import sql_parameters

from footplate.store.database import PARAMETERS, SQL, Database, bind, number_parameters

_BOOK = "insert into books (id, title) values (:id, :title)"
_COMMENT = {
    "id": "scmt_1",
    "organisation": "org_1",
    "session_id": "sesn_1",
    "author": "key_1",
    "turn_id": "turn_1",
    "tree": "scratch",
    "path": "a.py",
    "side": "new",
    "start_line": 1,
    "end_line": 2,
    "code": "c",
    "body": "b",
}


def test_no_statement_has_more_than_five_positional_parameters() -> None:
    assert sql_parameters.find_long_lists() == []


def test_every_call_in_the_source_fits_its_statement() -> None:
    assert sql_parameters.find_wrong_calls() == []


@pytest.mark.parametrize(
    ("text", "numbered", "names"),
    [
        (_BOOK, "insert into books (id, title) values ($1, $2)", ("id", "title")),
        ("select :b::int + :a + :b", "select $1::int + $2 + $1", ("b", "a")),
        ("select ':a' || 'it''s :b', :c", "select ':a' || 'it''s :b', $1", ("c",)),
        ("-- a worker's :a\nselect :b", "-- a worker's :a\nselect $1", ("b",)),
        ("select '{}'::jsonb, x[1:2], $1", "select '{}'::jsonb, x[1:2], $1", ()),
    ],
)
def test_names_become_numbers_outside_of_comments_and_literals(
    text: str, numbered: str, names: tuple[str, ...]
) -> None:
    assert number_parameters(text) == (numbered, names)


def test_a_call_names_its_parameters_in_any_order() -> None:
    text, *values = bind("insert_comment", **dict(reversed(_COMMENT.items())))
    assert text == SQL["insert_comment"]
    assert values == [_COMMENT[name] for name in PARAMETERS["insert_comment"]]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({name: value for name, value in _COMMENT.items() if name != "side"}, "side"),
        ({**_COMMENT, "colour": "red"}, "colour"),
        ({**{name: value for name, value in _COMMENT.items() if name != "side"}, "colour": "red"}, "colour, side"),
    ],
)
def test_a_name_that_is_missing_or_unknown_is_refused(values: dict[str, Any], named: str) -> None:
    with pytest.raises(TypeError, match=f"insert_comment and its call differ in these parameters: {named}"):
        bind("insert_comment", **values)


async def test_positional_values_are_refused_for_a_statement_with_names() -> None:
    database = Database.__new__(Database)
    with pytest.raises(TypeError, match="insert_comment has either positional or named parameters"):
        await database.fetchrow("insert_comment", *_COMMENT.values())


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (
            'c.fetch(*bind("insert_answer", organisation=1, fingerprint=2))',
            "attempt, body, body_hash, session_id, status",
        ),
        ('c.fetch(*bind("update_project", **_columns(x), id=1, colour=2))', "colour"),
        ('c.fetch(SQL["insert_answer"], 1, 2, 3, 4, 5, 6, 7)', "gives them by position"),
        ('database.fetchrow("insert_answer", 1, 2, 3, 4, 5, 6, 7)', "gives them by position"),
        ('c.fetch(*bind("insert_anser", id=1))', "no statement has the name insert_anser"),
        ('c.fetch(SQL["lock_head"], session_id)', "has 2 parameters, and the call gives 1"),
        ('database.fetch("lock_head", *(1, 2), 3)', "has 2 parameters, and the call gives 3"),
    ],
)
def test_a_wrong_call_is_found(call: str, fault: str) -> None:
    (found,) = sql_parameters.find_faults(f"async def run(c, database):\n    await {call}\n")
    assert found.startswith("2: ")
    assert found.endswith(fault)


def test_the_columns_of_a_function_are_part_of_the_call() -> None:
    columns = "def _columns(x):\n    return {'name': 1, 'branch': 2, 'trust': 3, 'metadata': 4, 'setup': 5%s}\n"
    call = "c.fetch(*bind('update_project', id=1, **_columns(x)))"
    assert sql_parameters.find_faults(columns % ", 'cached_directories': 6" + call) == []
    (found,) = sql_parameters.find_faults(columns % "" + call)
    assert found.endswith("differ in cached_directories")
