"""An organisation that speaks Chinese: what its people read at its doors is Chinese, but for names and commands."""

import re
from pathlib import Path

import pytest

from greenroom.app.organisation.phrases import command_phrases
from tests.e2e.organised import TEA, Company, new, step, writes
from tests.e2e.provider import provider, reached, settings
from tests.e2e.terminal import greenroom
from tests.e2e.typing import Typing

LETTERS = """
    Agent agent_id Ctrl Error ID JSON MAS TEXT Token ann ben bob greenroom manager run always inbox org tea start stop
    toml wu vm as in new dismiss cancel status en zh person
"""
NAMES = {*LETTERS.split(), *command_phrases("en")}
"""What is written with our letters in any language."""

WORD = re.compile(r"[A-Za-z][A-Za-z_]+")
QUOTED = re.compile(r"'[^']*'|\S*[/\\]\S*|\b[a-z0-9]{8}\b|\bt\d+(?:\.s\d+)?\b|\w+#\d+|\w+:\d+:\w+")
SCRIPT = {
    ("manager", "planning"): [
        [step("agent_manager"), step("task_manager"), step("send_message")],
        [step("task_manager")],
    ],
    ("manager", "agent_manager"): TEA["manager", "agent_manager"],
    ("manager", "task_manager"): [
        {
            "action": "add_task",
            "task_name": "茶",
            "task_intention": "茶的指南",
            "task_group": ["wu"],
            "stages": [{"stage_intention": "写作", "agent_allocation": {"wu": "写指南"}}],
        },
        {"action": "finish_task", "task_id": "t2", "state": "finished", "summary": "八十度。"},
    ],
    ("manager", "send_message"): [writes("ann", "绿茶还是红茶？", waiting=True)],
    ("manager", "process_message"): ["好。"],
    ("manager", "reflection"): [[]],
    ("wu", "planning"): [[step("think", "写。")]],
    ("wu", "think"): ["八十度。"],
    ("wu", "reflection"): [[]],
    ("wu", "summary"): [{"completion_summary": "八十度。", "state": "finished"}],
}


def foreign(text: str) -> set[str]:
    """Words that somebody who reads only Chinese would stumble over."""
    return set(WORD.findall(QUOTED.sub(" ", text))) - NAMES


@pytest.mark.req("MAS-8", "MAS-247")
def test_every_line_that_its_people_read_is_chinese(tmp_path: Path) -> None:
    home, here = tmp_path / "home", str(tmp_path)
    settings(home, 'language = "zh"\n')
    lines = "/help /who /tasks /notices /inbox /wat /answer /answer_9_x /to_bob:_x /group_us:_x /yes_7 /history_bob"
    lines += " /tool_wat_{x /form_tea_wu /form_tea_ann /form_t#a_ben /form_tea_ben /group_tea:_@bob"
    lines += " /to_Ben:_x"
    typed = "\n".join(one.replace("_", " ") for one in lines.split())
    told = []
    with provider(Company(SCRIPT)) as server:
        more = reached(server)

        def does(*words: str, stdin: str | None = None) -> int:
            ended = greenroom(home, *words, stdin=stdin, cwd=here, **more)
            told.append(f"{ended.out}\n{ended.err}")
            return ended.code

        told.append(new(home, tmp_path, "--person", "ann", "--person", "ben", **more).err)
        assert (tmp_path / ".greenroom" / "teams" / "tea.toml").read_text().startswith("# 一个组织")
        does("org", "list")
        assert does("inbox", "--as", "ann", "--say", "茶", "--wait") == 6
        assert does("inbox", "--as", "ann", stdin=typed) == 2
        assert does("inbox", "--as", "bob", "--say", "茶") == 2
        assert does("inbox", "--say", "茶") == 2
        assert does("org", "status") == 0
        assert does("org", "stop") == 0
        assert does("inbox", "--as", "ann", "--wait", stdin="/who\n") == 6
        with Typing(home, "org", "start", cwd=here, **more) as first:
            first.until("按Ctrl-C停止")
            first.until("正在做")
            assert does("org", "start") == 3
            assert does("inbox", "--as", "ann", "--wait", stdin="/answer 1 绿茶\n") == 0
            first.until("任务t2已完成")
            assert does("org", "stop") == 0
            assert first.ends() == 0
            told.append(first.seen)
        assert does("org", "list") == 0
    assert {name for one in told for name in foreign(one)} == set()
