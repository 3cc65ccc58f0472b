"""Single values as people write them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.app.settings import values
from greenroom.app.settings.values import Unfit

READERS: list[values.Reader] = [
    values.cost,
    values.tokens,
    values.time,
    values.duration,
    values.delay,
    values.price,
    values.count,
    values.text,
    values.texts,
    values.headers,
    values.variable,
    values.url,
    values.one_of("en", "zh"),
    values.switch,
    values.version,
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


@pytest.mark.parametrize(
    ("reader", "given_", "read"),
    [
        (values.cost, 2, 2.0),
        (values.cost, 0, 0.0),
        (values.cost, "1.50", 1.5),
        (values.cost, "$3", 3.0),
        (values.cost, " None ", None),
        (values.tokens, 200_000, 200_000),
        (values.tokens, "200k", 200_000),
        (values.tokens, "1.5M", 1_500_000),
        (values.tokens, 0, 0),
        (values.tokens, "none", None),
        (values.time, 90, 90.0),
        (values.time, "90", 90.0),
        (values.time, "90s", 90.0),
        (values.time, "15m", 900.0),
        (values.time, "1.5 h", 5400.0),
        (values.time, "2d", 172_800.0),
        (values.time, "none", None),
        (values.duration, "2m", 120.0),
        (values.delay, 0, 0.0),
        (values.count, 1, 1),
        (values.text, " x ", "x"),
        (values.texts, ["a", "b"], ("a", "b")),
        (values.url, "http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        (values.switch, True, True),
        (values.switch, " False ", False),
        (values.switch, "1", True),
        (values.version, 1, 1),
    ],
    ids=lambda value: getattr(value, "__name__", repr(value)),
)
def test_a_value_is_read(reader: values.Reader, given_: object, read: object) -> None:
    assert reader(given_) == read


BAD: dict[values.Reader, tuple[object, ...]] = {
    values.cost: (-1, "-1", "five", True, None, [], float("nan"), float("inf"), 1e13, "1e3", ""),
    values.tokens: (-1, 1.5, "1.0005k", "2g", True, 10**400, "9" * 400, "٣"),
    values.time: (-1, "1w", "m", "1m30s", "soon", False, float("nan")),
    values.duration: (0, "0s", "none", None),
    values.delay: (-0.1, "none"),
    values.price: (-0.1, "1", True, float("inf")),
    values.count: (0, -1, 1.0, True, "3", 10**13),
    values.text: ("", "  ", "a\nb", 3, None),
    values.texts: ([], "a", [""], [1], None),
    values.headers: ("a", [], {"a": 1}, {"": "x"}, {"a": "b\r\nc"}),
    values.variable: ("", "sk-abc", "1A", "A B", None, "Ä"),
    values.url: ("", "host", "ftp://x", "https://me:pw@x", "http://[::1", 3, "https://"),
    values.switch: ("", "yes", 1, 0, None, []),
    values.version: (2, 0, "1", True, 1.0),
}


@pytest.mark.parametrize("reader", BAD)
def test_what_cannot_be_used_is_unfit(reader: values.Reader) -> None:
    for bad in BAD[reader]:
        with pytest.raises(Unfit):
            reader(bad)


@given(st.sampled_from(READERS), ANYTHING)
def test_anything_is_read_or_unfit(reader: values.Reader, value: object) -> None:
    with suppress(Unfit):
        assert reader(value) == reader(value)


@pytest.mark.parametrize(
    ("reader", "unit"), [(values.time, {"s": 1, "m": 60, "h": 3600}), (values.tokens, {"": 1, "k": 1000, "m": 10**6})]
)
@given(st.integers(min_value=0, max_value=10**5))
def test_units_multiply(reader: Callable[[object], float | None], unit: dict[str, int], number: int) -> None:
    for name, times in unit.items():
        assert reader(f"{number}{name}") == number * times
