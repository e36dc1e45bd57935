"""The comparison of counts with the table: which differences are reported and which are tolerated."""

import tomllib

from bench.support.counts.table import differences, load_table, write_table


def test_more_is_always_a_difference_and_fewer_only_where_the_code_decides_it() -> None:
    table = {"native: text": {"sql": {"append_turn": 2}, "redis": {"XADD": 4}, "processes": {"all": 1}}}
    assert differences(table, {"native: text": {"sql": {"append_turn": 3}}}) == [
        "native: text: sql: append_turn 3 instead of 2"
    ]
    assert differences(table, {"native: text": {"sql": {}}}) == ["native: text: sql: append_turn 0 instead of 2"]
    assert differences(table, {"native: text": {"sql": {"append_turn": 2, "other": 1}}}) == [
        "native: text: sql: other 1 instead of 0"
    ]
    assert differences(table, {"native: text": {"redis": {"XADD": 5}}})
    assert not differences(table, {"native: text": {"redis": {"XADD": 3}, "processes": {}}})
    assert not differences(table, {"native: text": {"sql": {"append_turn": 2, "rules": 2}}})
    assert not differences(table, {"claude: text": {"redis": {"XADD": 9}}})


def test_the_table_is_read_as_it_was_written() -> None:
    assert tomllib.loads(write_table(load_table())) == load_table()
