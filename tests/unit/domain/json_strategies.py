"""Hypothesis strategies for JSON values, including NUL characters and lone surrogates."""

from hypothesis import strategies as st

from footplate.domain.json import Json, JsonObject

texts = st.text(st.characters(codec=None), max_size=50)
json_values: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
    max_leaves=20,
)
json_objects: st.SearchStrategy[JsonObject] = st.dictionaries(texts, json_values, max_size=5)
