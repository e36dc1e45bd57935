"""Entries in Redis decode to what was encoded, and an open preview is assembled without gaps or overlaps."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from footplate.domain.json import JsonObject, clean_text
from footplate.domain.sessions import events
from footplate.stream import live_entry_codec, redis_keys
from footplate.stream.live_entry_codec import DurableEvent, PreviewDelta, PreviewStart

MOMENT = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
START = PreviewStart("sevt_1", "agent.message", 4)


@pytest.mark.requirement("K3")
@given(st.lists(st.text(st.characters(), max_size=20), min_size=1, max_size=5))
def test_events_round_trip_in_their_wire_shape(texts: list[str]) -> None:
    positions = [events.Position(seq, events.message(text), MOMENT, None) for seq, text in enumerate(texts, 1)]
    (decoded,) = live_entry_codec.decode_items(live_entry_codec.encode_items([positions]))
    assert isinstance(decoded, list)
    for item, durable, text in zip(positions, decoded, texts, strict=True):
        body: JsonObject = {**events.to_wire(item), "content": durable.event["content"]}
        assert durable == DurableEvent(item.seq, item.event.id, item.event.type, body)
        assert durable.event["content"] in ([events.text_block(text)], [events.text_block(clean_text(text))])


@given(st.integers(0, 10**6), st.text(max_size=50))
def test_previews_round_trip(offset: int, text: str) -> None:
    delta = PreviewDelta("sevt_1", offset, text)
    assert live_entry_codec.decode_items(live_entry_codec.encode_items([START, delta])) == [START, delta]


def test_an_unknown_kind_of_entry_is_skipped() -> None:
    start, delta = (
        live_entry_codec.encode_items([START]),
        live_entry_codec.encode_items([PreviewDelta("sevt_1", 0, "a")]),
    )
    assert live_entry_codec.decode_items(start[:-1] + b',["dance",{}],' + delta[1:]) == [
        START,
        PreviewDelta("sevt_1", 0, "a"),
    ]


@given(st.text(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=20))
def test_an_open_preview_never_shows_text_that_was_not_written(text: str, cuts: list[tuple[int, int]]) -> None:
    """Pieces may repeat, overlap or be missing: the result is always a beginning of the text."""
    deltas = [PreviewDelta("sevt_1", start, text[start:end]) for start, end in cuts if start <= len(text)]
    found = live_entry_codec.decode_open_preview(live_entry_codec.encode_open_preview([START, *deltas]))
    assert found is not None
    assert found[0] == START
    assert text.startswith(found[1])


@given(st.lists(st.text(min_size=1, max_size=5), max_size=10))
def test_an_open_preview_is_complete_when_all_pieces_are_there(pieces: list[str]) -> None:
    lines = live_entry_codec.encode_open_preview([START])
    offset = 0
    for piece in pieces:
        lines += 2 * live_entry_codec.encode_open_preview(
            [PreviewDelta("sevt_1", offset, piece)]
        )  # a retried pipeline repeats pieces
        offset += len(piece)
    assert live_entry_codec.decode_open_preview(lines) == (START, "".join(pieces))


def test_an_open_preview_without_its_start_is_none() -> None:
    assert live_entry_codec.decode_open_preview(b"") is None
    assert (
        live_entry_codec.decode_open_preview(live_entry_codec.encode_open_preview([PreviewDelta("sevt_1", 0, "a")]))
        is None
    )


def test_all_keys_of_a_session_share_one_hash_tag() -> None:
    shards = {redis_keys.shard_of(f"sesn_{number}") for number in range(5000)}
    assert shards == set(range(redis_keys.SHARDS))
    assert redis_keys.stream_key(7) == "footplate:live:{07}"
    shard = redis_keys.shard_of("sesn_1")
    assert redis_keys.open_preview_key("org_1", "sesn_1") == f"footplate:open:{{{shard:02}}}:org_1:sesn_1"
