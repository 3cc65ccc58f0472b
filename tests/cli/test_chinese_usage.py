"""Errors in the arguments of a command, in the language of the settings."""

from __future__ import annotations

import pytest

from greenroom.app.messages import _Language
from tests.cli.conftest import Type


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "x", "--max-cost", "abc"), "必须是美元数，不小于0"),
        (("resume", "nope", "--max-time", "soon"), "不能是'soon'"),
    ],
)
def test_an_error_in_the_arguments_is_in_the_language_of_the_settings(
    greenroom: Type, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], said: str
) -> None:
    assert said not in greenroom(*words).err
    monkeypatch.setattr(_Language, "code", _Language.code)  # as it was for other tests
    monkeypatch.setenv("GREENROOM_LANGUAGE", "zh")
    assert said in greenroom(*words).err
