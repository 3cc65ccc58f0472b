"""The coder: what it is told in both languages, and the few tools that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.abilities.tools.propose_plan import NAME as PLANS
from greenroom.app.jobs.kit import PACK, TOOLS, coder, proven
from greenroom.app.jobs.verdict import DELIVER
from greenroom.app.toolset.toolset import toolbox_of

MOST = 12
"""Tools of a coder: more of them are chosen worse."""

TOKENS = 1_000
"""What its prompt may cost in every request, by a rough count."""

IN_A_JOB = {"run_checks", PLANS}
"""Tools that only a job has."""


def test_it_has_few_tools_and_each_of_them_is_there(tmp_path: Path) -> None:
    known = {tool.name for tool in toolbox_of(tmp_path)} | IN_A_JOB
    assert len(TOOLS) == len(set(TOOLS)) <= MOST
    assert set(TOOLS) <= known


@pytest.mark.parametrize("language", ["en", "zh"])
def test_its_prompt_names_only_tools_that_it_has_and_is_worth_its_tokens(language: str) -> None:
    prompt = coder(language).prompt
    named = {word.strip("`") for word in prompt.split("`")[1::2]}
    assert named - {"rg", "head", "finish"} <= set(TOOLS)
    assert {"propose_plan", "run_checks", "ask_user", "patch", "rewrite"} <= named
    signs = sum(1 if ord(sign) > 0x2E80 else 0.25 for sign in prompt)
    assert signs < TOKENS


def test_both_languages_say_the_same_things_in_the_same_order() -> None:
    english, chinese = (PACK.render(one, "coder", {}) for one in ("en", "zh"))
    for mark in ("\n# ", "\n1. ", "\n6. ", "\n- "):
        assert english.count(mark) == chinese.count(mark)
    assert english.split("`")[1::2] == chinese.split("`")[1::2]


def test_it_speaks_the_language_of_the_settings_and_english_where_there_is_no_other() -> None:
    assert coder("zh").prompt.startswith("你修改一个代码仓库")
    assert coder("zh").language == "zh"
    assert coder("fr").prompt == coder("en").prompt


def test_it_is_told_to_answer_in_the_language_of_the_request_whatever_the_settings_say() -> None:
    assert "answers are in the language in which you were asked" in coder("en").prompt
    assert "回答用对方提出要求时所用的语言" in coder("zh").prompt


def test_the_house_has_the_last_word_on_whoever_is_proven() -> None:
    assert coder("en").proof == ""
    assert coder("en").turn.ends == "finish"
    assert proven(coder("en")).proof == DELIVER
