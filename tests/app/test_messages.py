"""The message catalogue: the same keys and values in every language, and no code without a message."""

from __future__ import annotations

import ast
import re
import string
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import cast, get_args

import pytest

from greenroom.app.conversation.chat import TurnState
from greenroom.app.messages import LANGUAGES, set_language, translate
from greenroom.app.task_status import TaskState
from greenroom.core.base.errors import GreenroomError, ProviderFault, RefusedError, WorldFault, reject, render_code
from greenroom.policy.decision import decide_host, join_reasons
from greenroom.policy.rulebook import LayeredRule, Rulebook
from greenroom.policy.rules import parse
from greenroom.runs.verdict import VerdictState

SRC = Path(__file__).resolve().parents[2] / "src" / "greenroom"
FILES = ("app/messages/", "app/messages/organisation.")
OPTIONS = {"spent", "again"}
"""Keywords of errors that are not values of their message."""


@cache
def read_messages(stem: str, language: str) -> Mapping[str, str]:
    """Return the messages of a file by `TABLE.NAME`."""
    tables = tomllib.loads((SRC / f"{stem}{language}.toml").read_text("utf-8"))
    return {f"{table}.{name}": text for table, messages in tables.items() for name, text in messages.items()}


@cache
def read_source() -> str:
    """Return the whole code, with one kind of quotes."""
    return "\n".join(path.read_text("utf-8") for path in SRC.rglob("*.py")).replace("'", '"')


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
        name = cast("ast.Name", call.func).id
        key = next(
            (part.value for part in call.args[:2] if isinstance(part, ast.Constant) and "." in str(part.value)), ""
        )
        if isinstance(key, str) and is_message(name, key):
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
        used = {key for key in english if f'"{key}"' in read_source()}
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


BY_NAME = re.compile(
    r"(charter|founding|inputs?|(chat_)?commands|refusals|hints|notices|instructions|states|nouns|rejections|rejection_hints"
    r"|findings(_with_tests)?|guard|actions|reasons|validation|provider_faults|decision|(many_)?labels|destinations|counts|columns)\..*"
    r"|library\.((no|not_a|program)_(run|conversation)|\w+_kind)|chat\.key_\w+|models\.call_\w+|tools\.effect_\w+|stat\.\w+"
    r"|conversation\.\w+|approvals\.\w+|change\.(recovered|applied)\w*|home\.(only_copy|discard\w*|sandbox_\w+)"
    r"|report\.(in_place|nothing_changed|limit_\w+|turn_\w+)|run\.(verified|failed|unverified|cancelled)"
    r"|integration\.(result|contributions|tests|issues|conflicts|reviews|suggestions|write_sets|not_verified|files)"
    r"|integration\.(recommendations|summaries|score|coverage_\w+)|skills\.(new|changed)"
    r"|options\.(no|type)_\w+|plan\.(because|by|basis|name|goal)_\w+|plan\.(required|recommended|optional|\w+_phase)"
    r"|compare\.(best|by|next|other)_\w+|conflicts\.((by|is|state|rung)_\w+|\w+_proposes)"
)
"""Messages whose code is put together where they are shown."""


def test_every_message_is_used() -> None:
    keys = [key for key in read_messages(FILES[0], "en") if not BY_NAME.fullmatch(key)]
    assert len(keys) > 700
    assert [key for key in keys if f'"{key}"' not in read_source()] == []


def test_a_question_is_in_the_language_of_the_process_and_a_denial_is_english() -> None:
    asked = decide_host(Rulebook(()), "pypi.org").why
    denied = Rulebook([LayeredRule(layer="user", rule=parse("deny host pypi.org"))])
    said = decide_host(denied, "pypi.org").why
    try:
        set_language("zh")
        assert decide_host(Rulebook(()), "pypi.org").why == "它要访问`pypi.org`，没有规则允许。" != asked
        assert decide_host(denied, "pypi.org").why == said
        hosts = [decide_host(Rulebook(()), name).why for name in ("a.org", "b.org")]
        run = "它要运行`curl a.org`，没有规则允许。"
        assert join_reasons([run, *hosts]) == ["它要运行`curl a.org`并访问`a.org`和`b.org`，没有规则允许。"]
    finally:
        set_language("en")


def find_rejections() -> Iterator[tuple[str, set[str]]]:
    """Yield the message and the values of every `reject(…)` in the rules."""
    for path in sorted((SRC / "core").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reject":
                assert isinstance(node.args[0], ast.Constant)
                yield str(node.args[0].value), {word.arg or "**" for word in node.keywords} - {"code"}


def test_every_rejection_of_a_rule_has_a_message_that_gets_its_values() -> None:
    messages, found = read_messages(FILES[0], "en"), dict(find_rejections())
    named = {key.partition(".")[2] for key in messages if key.startswith(("rejections.", "rejection_hints."))}
    assert named == set(found)
    for name, values in found.items():
        wanted = find_values(f"{messages[f'rejections.{name}']} {messages.get(f'rejection_hints.{name}', '')}")
        assert wanted <= values or "**" in values, name


def test_a_rejection_is_a_sentence_in_the_language_of_the_process_and_english_for_models() -> None:
    rejection = reject("task_started", "Task {task!r} is {state} already.", task="t1", state="running")
    error = RefusedError(rejection)
    assert (str(rejection), str(error)) == ("Task 't1' is running already.",) * 2
    try:
        set_language("zh")
        assert (error.why, rejection.why) == ("任务't1'的状态已是“进行中”。", "Task 't1' is running already.")
    finally:
        set_language("en")


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


def test_every_state_has_a_word_in_every_language() -> None:
    states = {*get_args(TaskState), *get_args(TurnState), *get_args(VerdictState)}
    for language in LANGUAGES:
        assert {f"states.{state}" for state in states} <= set(read_messages(FILES[0], language))


def test_every_counted_thing_has_one_and_many() -> None:
    found = {
        noun for path in SRC.rglob("*.py") for noun in re.findall(r'count_things\("(\w+)"', path.read_text("utf-8"))
    }
    assert len(found) > 4
    for language in LANGUAGES:
        messages = read_messages(FILES[0], language)
        assert [noun for noun in found if not {f"counts.one_{noun}", f"counts.{noun}s"} <= set(messages)] == []
