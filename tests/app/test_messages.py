"""The message catalogue: the same keys and values in every language, and no code without a message."""

from __future__ import annotations

import ast
import string
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import cast

import pytest

from greenroom.app.messages import LANGUAGES, set_language, translate
from greenroom.core.base.errors import GreenroomError, ProviderFault, WorldFault, render_code

SRC = Path(__file__).resolve().parents[2] / "src" / "greenroom"
FILES = ("app/messages/", "cli/render/organisation.")
OPTIONS = {"spent", "again"}
"""Keywords of errors that are not values of their message."""


@cache
def read_messages(stem: str, language: str) -> Mapping[str, str]:
    """Return the messages of a file by `TABLE.NAME`."""
    tables = tomllib.loads((SRC / f"{stem}{language}.toml").read_text("utf-8"))
    return {f"{table}.{name}": text for table, messages in tables.items() for name, text in messages.items()}


def find_values(text: str) -> set[str]:
    """Return the names of the values that a message needs."""
    return {name.partition(".")[0].partition("[")[0] for _, name, _, _ in string.Formatter().parse(text) if name}


def find_uses() -> Iterator[tuple[str, str, set[str]]]:
    """Yield place, key and values of every message that the code names."""
    calls = (
        (path, node)
        for path in sorted(SRC.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args
    )
    for path, call in calls:
        key = call.args[0].value if isinstance(call.args[0], ast.Constant) else None
        if isinstance(key, str) and is_message(cast("ast.Name", call.func).id, key):
            yield f"{path.name}:{call.lineno}", key, {word.arg or "**" for word in call.keywords} - OPTIONS


def is_message(function: str, key: str) -> bool:
    """Whether this call names a message: `translate("table.name")`, or an error made from a code."""
    if key.count(".") != 1 or not key.replace(".", "_").isidentifier():
        return False
    is_error = function[0].isupper() and key in read_messages(FILES[0], "en")
    return function == "translate" or function.endswith("Fault") or is_error


@pytest.mark.parametrize("stem", FILES)
def test_every_language_has_the_same_messages_with_the_same_values(stem: str) -> None:
    english = read_messages(stem, "en")
    for language in LANGUAGES[1:]:
        other = read_messages(stem, language)
        assert set(other) == set(english)
        used = {key for _, key, _ in find_uses()} & set(english)
        assert [key for key in used if find_values(other[key]) != find_values(english[key])] == []


def test_every_message_that_the_code_names_exists_and_gets_its_values() -> None:
    messages = read_messages(FILES[0], "en")
    uses = list(find_uses())
    assert len(uses) > 200, "the search finds what it is for"
    wrong = [
        f"{place} {key}"
        for place, key, values in uses
        if key not in messages or ("**" not in values and values != find_values(messages[key]))
    ]
    assert wrong == []


def test_an_error_has_a_code_and_is_a_sentence_in_the_language_of_the_process() -> None:
    error = WorldFault("storage.database_closed", path="greenroom.db")
    assert (error.code, str(error)) == ("storage.database_closed", "greenroom.db was closed. Open it again.")
    try:
        set_language("zh")
        assert str(error) != "greenroom.db was closed. Open it again."
        assert "greenroom.db" in str(error)
    finally:
        set_language("en")


def test_an_error_made_from_a_sentence_has_no_code() -> None:
    error = ProviderFault("It is down. Try later.", again=True)
    assert (error.code, str(error), error.again) == ("", "It is down. Try later.", True)
    assert GreenroomError().code == ""


def test_an_unknown_key_stays_readable() -> None:
    assert translate("no_table.no_name") == "no_table.no_name"
    assert render_code("git.locked", {"path": "a"}) == "git.locked path=a"
