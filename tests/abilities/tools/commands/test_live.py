"""What is seen of a command while it runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.tools.command_output import LONGEST, LiveLines


def shown(*pieces: str, most: int = 1_000_000) -> list[str]:
    """What those see who watch."""
    seen: list[str] = []
    live = LiveLines(lambda printed: seen.append(printed.text), most)
    for piece in pieces:
        live.add(piece)
    live.end()
    return seen


@given(st.lists(st.text(alphabet="ab\n", max_size=10)))
def test_lines_are_shown_whole_and_nothing_is_lost(pieces: list[str]) -> None:
    seen, text = shown(*pieces), "".join(pieces)
    assert "".join(seen) == (text if not text or text.endswith("\n") else f"{text}\n")
    assert all(one.endswith("\n") for one in seen)


def test_a_line_without_an_end_is_not_kept_back_for_ever() -> None:
    long = "x" * (LONGEST + 1)
    assert shown(long, "y") == [f"{long}\n", "y\n"]


def test_of_a_flood_only_the_beginning_is_shown() -> None:
    seen = shown(*["line\n"] * 10, most=12)
    assert seen == ["line\n", "line\n", "line\n[… it prints more than is shown here …]\n"]
    assert shown("ab\n", "c", most=3) == ["ab\n[… it prints more than is shown here …]\n"]
