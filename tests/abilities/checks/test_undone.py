"""Where no file was changed, nobody may say that something was made; how things are may be told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.undone import undone


@pytest.mark.parametrize(
    "text",
    [
        "Added `json` support to `export.py`, with tests.",
        "I have added JSON to the exporter and it works now.",
        "I've looked at the exporter and fixed it.",
        "It is implemented and committed.",
        "All 40 tests pass and app.txt is fixed.",
        "JSON support was added to `export.py`.",
        "The bug has been fixed.",
        "Here is what came of it:\n\n- Implemented `--json`\n- Updated the docs",
        "**Fixed** the parser.",
        "Done: created the file.",
        "The exporter now supports JSON.",
        "已为 `export.py` 添加 JSON 支持。",
        "我修复了这个错误。",
        "代码已经提交。",
        "功能实现完成。",
        "Done.",
        "**All done!** ✅",
        "It's finished.",
        "The task is now complete.",
        "完成了。",
        "任务已完成。",
    ],
)
def test_what_is_said_to_be_done_is_not_so(text: str) -> None:
    assert undone(text)
    assert all(one.endswith("and nothing was changed.") for one in undone(text))


@pytest.mark.parametrize(
    "text",
    [
        "It is green.",
        "Done: there are 4 callers.",
        "The migration is complete since `a.py` has no caller.",
        "It is done in `export.py`.",
        "",
        "The exporter is implemented in `export.py`; `fixed.py` has the rest.",
        "Rows are written to a file that is created by `open`.",
        "`--json` was added in version 2.0.",
        "It was changed by Pia in commit 1a2b3c4d.",
        "I have not changed anything.",
        "I found no test that was changed.",
        "Nothing was added.",
        "You should have it fixed before the release.",
        "```\nadded 3 packages\n```",
        "I looked at what changed: nothing.",
        "导出功能在 `export.py` 中实现。",
        "没有修改任何文件。",
        "`--json` 在 2.0 版本中添加了。",
    ],
)
def test_how_things_are_and_came_about_may_be_told(text: str) -> None:
    assert undone(text) == ()


@given(st.text(max_size=500))
def test_any_text_can_be_read(text: str) -> None:
    assert isinstance(undone(text), tuple)


def test_a_long_text_is_read_quickly() -> None:
    assert undone("I we " * 20_000) == ()
    assert undone("now also just " * 7_000) == ()
    assert undone("已为" * 50_000) == ()
