"""Whoever is asked can be replaced by a function."""

import asyncio
from collections.abc import Callable

import pytest

from greenroom.app.conversation.people import (
    Callables,
    Gone,
    Nobody,
    Read,
    Stopped,
    Written,
    both,
    confirmed,
    until_empty,
)


@pytest.mark.req("AG-141", "AG-168")
def test_a_function_for_several_lines_may_take_one_argument_or_two() -> None:
    assert both(lambda tip, print_on_empty: f"{tip} {print_on_empty}")("Text?", True) == "Text? True"
    assert both(lambda tip: f"{tip} only")("Text?", True) == "Text? only"


def test_a_mistake_inside_the_function_is_not_taken_for_another_signature() -> None:
    def broken(tip: str, print_on_empty: bool) -> str:
        raise TypeError("of my own")

    with pytest.raises(TypeError, match="of my own"):
        both(broken)("Text?", True)


def typed(*lines: str) -> Callable[[str], str]:
    left = iter(lines)
    return lambda _: next(left)


@pytest.mark.req("AG-142")
def test_several_lines_end_at_an_empty_one_and_plain_input_takes_their_place() -> None:
    assert until_empty(typed("one", "two", "", "three"))("Text?") == "one\ntwo"
    assert until_empty(typed(""))("Text?") == ""
    assert until_empty(None, plain=typed("only this"))("Text?") == "only this"


@pytest.mark.req("AG-143", "AG-174")
def test_a_yes_or_no_comes_from_a_function_that_is_told_the_default() -> None:
    asked: list[tuple[str, bool]] = []

    def window(tip: str, default: bool) -> bool:
        asked.append((tip, default))
        return not default

    def closed(tip: str, default: bool) -> bool:
        raise EOFError

    assert confirmed(window, "Go?") is False
    assert confirmed(window, "Go?", default=False) is True
    assert asked == [("Go?", True), ("Go?", False)]
    assert confirmed(closed, "Go?", default=False) is False


@pytest.mark.parametrize(("word", "default", "meant"), [("y", False, True), ("no", True, False), ("", True, True)])
async def test_without_functions_a_person_types(
    monkeypatch: pytest.MonkeyPatch, word: str, default: bool, meant: bool
) -> None:
    lines = iter(["one", "two", "", word])
    monkeypatch.setattr("builtins.input", lambda tip: next(lines))
    person = Callables()
    assert await person.write("Text", asyncio.Event()) == Written(text="one\ntwo")
    assert await person.agrees("Go?", default=default) is meant


@pytest.mark.parametrize(("raised", "read"), [(EOFError, Gone()), (KeyboardInterrupt, Stopped())])
async def test_a_function_may_say_that_nobody_is_there(raised: type[BaseException], read: Read) -> None:
    def gone(tip: str) -> str:
        raise raised

    person = Callables(gone, lambda tip, default: default)
    assert await person.write("", asyncio.Event()) == read


async def test_a_function_is_a_person_and_nobody_is_one_too() -> None:
    person = Callables(lambda tip: f"{tip}!", lambda tip, default: not default)
    assert await person.write("Text", asyncio.Event()) == Written(text="Text!")
    assert await person.agrees("Go?", default=False) is True
    person.stop()
    nobody = Nobody()
    nobody.stop()
    assert await nobody.write("", asyncio.Event()) == Gone()
    assert await nobody.agrees("Go?", default=False) is False
