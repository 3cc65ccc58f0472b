"""A text that knows where it comes from is a text like every other one."""

from greenroom.core.base.text import Labelled, origins_of


def test_a_text_keeps_its_labels_and_is_equal_to_its_words() -> None:
    told = Labelled("Use tabs.", ("file:AGENTS.md",))
    assert (told, origins_of(told), f"{told}") == ("Use tabs.", ("file:AGENTS.md",), "Use tabs.")
    assert origins_of("Use tabs.") == origins_of(Labelled("x")) == ()
