import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from isthmus.encoding import value_count
from isthmus.encoding.value_count import has_more_values, size_of_value

texts = st.text(st.sampled_from('a,[{}]:"\\é\n'), max_size=12)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), texts),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4), st.dictionaries(texts, inner, min_size=1, max_size=4)
    ),
    max_leaves=20,
)


def count(value: Any) -> int:
    """Return the number of values in a value without empty lists and objects."""
    if isinstance(value, Mapping):
        return 1 + sum(map(count, cast("Mapping[str, Any]", value).values()))
    return 1 + sum(map(count, cast("Sequence[Any]", value))) if isinstance(value, list) else 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values, st.integers(1, 9), st.booleans())
@example(["\\\\", '\\"', ',"[', "\\"], 1, False)
def test_values_are_counted_and_what_is_in_strings_is_not(
    monkeypatch: pytest.MonkeyPatch, value: Any, window: int, is_ascii: bool
) -> None:
    monkeypatch.setattr(value_count, "WINDOW", window)
    text = json.dumps(value, ensure_ascii=is_ascii).encode()
    number = count(value) - 1  # the first one has no mark before it
    assert not has_more_values(text, number)
    assert number == 0 or has_more_values(text, number - 1)


def test_text_with_many_brackets_and_commas_is_one_value() -> None:
    assert not has_more_values(json.dumps({"text": '[{},"\\' * 300_000}).encode(), 10)


MANY: list[dict[str, int]] = [{}] * 200_000


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [("x" * 100, 100, 120), ({"key": ["x" * 50, 1, None]}, 50, 120), (MANY, 1000, 2000), ([], 0, 10)],
)
def test_the_size_of_a_value_is_looked_at_as_far_as_it_matters(value: Any, least: int, most: int) -> None:
    assert least <= size_of_value(value, 1000) <= most
