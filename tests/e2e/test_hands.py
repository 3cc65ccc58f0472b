"""Agents with tools, at a person's terminal: files are read and changed, commands are asked about, answers hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from greenroom.testing.fake_openai import Answer, Call, FakeOpenAI
from greenroom.testing.fake_openai.scripts import Reply
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import greenroom
from tests.e2e.typing import CTRL_D, ENTER, Typing

CODER = """---
description: Changes code.
groups: [read, edit, command, human]
---
Do what you are asked.
"""


@pytest.fixture(name="project")
def _project(tmp_path: Path) -> Path:
    """A folder with an agent and a file."""
    folder = tmp_path / "project"
    (folder / ".greenroom" / "agents").mkdir(parents=True)
    (folder / ".greenroom" / "agents" / "coder.md").write_text(CODER, encoding="utf-8")
    (folder / "hello.py").write_text("print('hello')\n", encoding="utf-8")
    (folder / "make.py").write_text("open('made.txt', 'w').write('made\\n')\n", encoding="utf-8")
    return folder


def acts(*calls: tuple[str, Mapping[str, object]]) -> list[Reply]:
    """A model that makes these calls one after the other, then says that it is done."""
    made: list[Reply] = [
        Answer(calls=(Call(name=name, arguments=given, id=f"c{place}"),)) for place, (name, given) in enumerate(calls)
    ]
    return [*made, Answer(text="Done.")]


def talk(home: Path, project: Path, fake: FakeOpenAI) -> Typing:
    """A chat with the agent, in its folder."""
    return Typing(home, "chat", "--agent", "coder", cwd=str(project), **reached(fake))


PATCH = ("patch", {"file": "hello.py", "edits": [{"search": "'hello'", "replace": "'goodbye'"}]})
SCRIPT = ("execute_script", {"script": "python3 make.py"})


def test_an_agent_reads_and_changes_files_unasked_and_asks_before_a_command(tmp_path: Path, project: Path) -> None:
    read = ("read_code", {"file": "hello.py"})
    with provider(acts(read, PATCH, SCRIPT)) as fake, talk(tmp_path, project, fake) as chat:
        chat.says("Say goodbye.")
        chat.until("wants to use execute_script")
        assert (project / "hello.py").read_text(encoding="utf-8") == "print('goodbye')\n"
        assert not (project / "made.txt").exists()
        chat.press(f"y{ENTER}")
        chat.until("Done.")
        chat.until("›")
        chat.press(CTRL_D)
        assert chat.ends() == 0
    assert (project / "made.txt").read_text(encoding="utf-8") == "made\n"


def test_always_holds_in_the_next_run_and_only_for_what_was_agreed_to(tmp_path: Path, project: Path) -> None:
    words = ("run", "Make it.", "--agent", "coder")
    with provider(acts(SCRIPT)) as fake, Typing(tmp_path, *words, cwd=str(project), **reached(fake)) as run:
        run.until("[a] always")
        run.press(f"a{ENTER}")
        run.until("Done.")
        assert run.ends() == 0
    assert "allow line python3 make.py" in greenroom(tmp_path, "permissions", "list", cwd=str(project)).out
    (project / "made.txt").unlink()
    with provider(acts(SCRIPT)) as fake:
        ended = greenroom(tmp_path, "run", "Make it.", "--agent", "coder", cwd=str(project), **reached(fake))
    assert (ended.code, ended.out) == (0, "Done.\n")
    other = ("execute_script", {"script": "python3 make.py now"})
    with provider(acts(other)) as fake:
        ended = greenroom(tmp_path, "run", "Make it.", "--agent", "coder", cwd=str(project), **reached(fake))
    assert ended.code == 6


def test_without_a_terminal_a_run_is_parked_and_answered_later(tmp_path: Path, project: Path) -> None:
    with provider(acts(SCRIPT)) as fake:
        parked = greenroom(tmp_path, "run", "Make it.", "--agent", "coder", cwd=str(project), **reached(fake))
        assert parked.code == 6
        assert not (project / "made.txt").exists()
        assert greenroom(tmp_path, "answer", "last", "yes").code == 0
        ended = greenroom(tmp_path, "resume", "last", cwd=str(tmp_path), **reached(fake))
    assert (ended.code, ended.out) == (0, "Done.\n")
    assert (project / "made.txt").exists(), "it works where it was begun, not where it is taken up again"


def test_a_denial_is_taken_well(tmp_path: Path, project: Path) -> None:
    with provider(acts(SCRIPT)) as fake:
        with talk(tmp_path, project, fake) as chat:
            chat.says("Make it.")
            chat.until("wants to use execute_script")
            chat.press(f"n not now{ENTER}")
            chat.until("Done.")
        body = fake.requests[-1].body
    assert "Denied by" in str(body["messages"])
    assert "not now" in str(body["messages"])
    assert not (project / "made.txt").exists()


def test_a_question_is_answered_in_words(tmp_path: Path, project: Path) -> None:
    with provider(acts(("ask_user", {"question": "Which colour?"}))) as fake:
        with talk(tmp_path, project, fake) as chat:
            chat.says("Paint it.")
            chat.until("Which colour?")
            chat.press(f"blue{ENTER}")
            chat.until("Done.")
        assert '"blue"' in str(fake.requests[-1].body).replace("'", '"')


def test_rules_are_agreed_to_and_taken_back_by_hand(tmp_path: Path, project: Path) -> None:
    here = str(project)
    assert "nothing for good" in greenroom(tmp_path, "permissions", "list", cwd=here).err
    assert greenroom(tmp_path, "permissions", "add", "allow", "command", "npm", "test", cwd=here).code == 0
    assert greenroom(tmp_path, "permissions", "add", "deny path **/*.sql", "--everywhere", cwd=here).code == 0
    listed = greenroom(tmp_path, "permissions", "list", "--output-format", "json", cwd=here).json["rules"]
    assert listed == [
        {"rule": "deny path **/*.sql", "where": "everywhere"},
        {"rule": "allow command npm test", "where": here},
    ]
    assert greenroom(tmp_path, "permissions", "remove", "allow command npm test", cwd=here).code == 0
    assert greenroom(tmp_path, "permissions", "remove", "allow command npm test", cwd=here).code == 1
    wrong = greenroom(tmp_path, "permissions", "add", "permit command npm", cwd=here)
    assert (wrong.code != 0, "allow" in wrong.err) == (True, True)


def test_the_tools_are_listed_and_shown(tmp_path: Path, project: Path) -> None:
    listed = greenroom(tmp_path, "tools", "list", "--output-format", "json", cwd=str(project)).json["tools"]
    assert isinstance(listed, list)
    assert {one["name"]: one["group"] for one in listed}["execute_script"] == "command"
    assert len(listed) <= 12
    assert '"search"' in greenroom(tmp_path, "tools", "show", "patch", cwd=str(project)).out
    assert "Did you mean 'patch'?" in greenroom(tmp_path, "tools", "show", "pach", cwd=str(project)).err
