"""Single values as people write them."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from greenroom.app.settings import values
from greenroom.app.settings.values import Unfit

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=4,
)


@pytest.mark.parametrize(
    ("reader", "given_", "read"),
    [
        ("cost", 2, 2.0),
        ("cost", 0, 0.0),
        ("cost", "1.50", 1.5),
        ("cost", "$3", 3.0),
        ("cost", " None ", None),
        ("tokens", 200_000, 200_000),
        ("tokens", "200k", 200_000),
        ("tokens", "1.5M", 1_500_000),
        ("tokens", 0, 0),
        ("tokens", "none", None),
        ("time", 90, 90.0),
        ("time", "90s", 90.0),
        ("time", "15m", 900.0),
        ("time", "1.5 h", 5400.0),
        ("time", "2d", 172_800.0),
        ("time", "none", None),
        ("duration", "2m", 120.0),
        ("delay", 0, 0.0),
        ("count", 1, 1),
        ("text", " x ", "x"),
        ("texts", ["a", "b"], ("a", "b")),
        ("url", "http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("switch", True, True),
        ("switch", " False ", False),
        ("switch", "1", True),
        ("version", 1, 1),
    ],
)
def test_a_value_is_read(reader: str, given_: object, read: object) -> None:
    assert getattr(values, reader)(given_) == read


BAD: dict[str, tuple[object, ...]] = {
    "cost": (-1, "-1", "five", True, None, [], float("nan"), float("inf"), 1e13, "1e3", ""),
    "tokens": (-1, 1.5, "1.0005k", "2g", True, 10**400, "9" * 400, "٣"),
    "time": (-1, "1w", "m", "1m30s", "soon", False, float("nan")),
    "duration": (0, "0s", "none", None),
    "delay": (-0.1, "none"),
    "price": (-0.1, "1", True, float("inf")),
    "count": (0, -1, 1.0, True, "3", 10**13),
    "text": ("", "  ", "a\nb", 3, None),
    "texts": ([], "a", [""], [1], None),
    "headers": ("a", [], {"a": 1}, {"": "x"}, {"a": "b\r\nc"}),
    "variable": ("", "sk-abc", "1A", "A B", None, "Ä"),
    "url": ("", "host", "ftp://x", "https://me:pw@x", "http://[::1", 3, "https://"),
    "switch": ("", "yes", 1, 0, None, []),
    "version": (2, 0, "1", True, 1.0),
    "places": (None, "localhost:80", ["localhost"], ["127.1:80"], [5], ["a b:80"], [""]),
    "ports": (None, 80, [0], [70000], ["80"], [True]),
    "hosts": (None, "pypi.org", ["https://pypi.org"], ["*.org"], [5], ["a b"], [""], ["127.1"]),
}


@pytest.mark.parametrize("reader", BAD)
def test_what_cannot_be_used_is_unfit(reader: str) -> None:
    for bad in BAD[reader]:
        with pytest.raises(Unfit):
            getattr(values, reader)(bad)
