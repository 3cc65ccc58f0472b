"""Single values as people write them."""

from __future__ import annotations

import pytest

from greenroom.app.settings import values
from greenroom.app.settings.values import BadValue


@pytest.mark.parametrize(
    ("reader", "given_", "read"),
    [
        ("parse_cost", 2, 2.0),
        ("parse_cost", 0, 0.0),
        ("parse_cost", "1.50", 1.5),
        ("parse_cost", "$3", 3.0),
        ("parse_cost", " None ", None),
        ("parse_tokens", 200_000, 200_000),
        ("parse_tokens", "200k", 200_000),
        ("parse_tokens", "1.5M", 1_500_000),
        ("parse_tokens", 0, 0),
        ("parse_tokens", "none", None),
        ("parse_time", 90, 90.0),
        ("parse_time", "90s", 90.0),
        ("parse_time", "15m", 900.0),
        ("parse_time", "1.5 h", 5400.0),
        ("parse_time", "2d", 172_800.0),
        ("parse_time", "none", None),
        ("parse_duration", "2m", 120.0),
        ("parse_delay", 0, 0.0),
        ("parse_count", 1, 1),
        ("parse_text", " x ", "x"),
        ("parse_texts", ["a", "b"], ("a", "b")),
        ("parse_url", "http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("parse_switch", True, True),
        ("parse_switch", " False ", False),
        ("parse_switch", "1", True),
        ("parse_version", 1, 1),
    ],
)
def test_a_value_is_read(reader: str, given_: object, read: object) -> None:
    assert getattr(values, reader)(given_) == read


BAD: dict[str, tuple[object, ...]] = {
    "parse_cost": (-1, "-1", "five", True, None, [], float("nan"), float("inf"), 1e13, "1e3", ""),
    "parse_tokens": (-1, 1.5, "1.0005k", "2g", True, 10**400, "9" * 400, "٣"),
    "parse_time": (-1, "1w", "m", "1m30s", "soon", False, float("nan")),
    "parse_duration": (0, "0s", "none", None),
    "parse_delay": (-0.1, "none"),
    "parse_price": (-0.1, "1", True, float("inf")),
    "parse_count": (0, -1, 1.0, True, "3", 10**13),
    "parse_text": ("", "  ", "a\nb", 3, None),
    "parse_texts": ([], "a", [""], [1], None),
    "parse_headers": ("a", [], {"a": 1}, {"": "x"}, {"a": "b\r\nc"}),
    "parse_variable": ("", "sk-abc", "1A", "A B", None, "Ä"),
    "parse_url": ("", "host", "ftp://x", "https://me:pw@x", "http://[::1", 3, "https://"),
    "parse_switch": ("", "yes", 1, 0, None, []),
    "parse_version": (2, 0, "1", True, 1.0),
    "parse_folders": (None, "localhost:80", ["localhost"], ["127.1:80"], [5], ["a b:80"], [""]),
    "parse_ports": (None, 80, [0], [70000], ["80"], [True]),
    "parse_hosts": (None, "pypi.org", ["https://pypi.org"], ["*.org"], [5], ["a b"], [""], ["127.1"]),
}


@pytest.mark.parametrize("reader", BAD)
def test_what_cannot_be_used_is_unfit(reader: str) -> None:
    for bad in BAD[reader]:
        with pytest.raises(BadValue):
            getattr(values, reader)(bad)
