"""Agents with tools, at a person's terminal: files are read and changed, commands are asked about, answers hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.app.trust.yes import agree
from tests.e2e.provider import provider, reached
from tests.e2e.terminal import greenroom
from tests.e2e.typing import CTRL_D, ENTER, Typing
from tests.fake_openai import Answer, Call, FakeOpenAI
from tests.fake_openai.scripts import Reply

CODER = """---
description: Changes code.
groups: [read, edit, command, human]
---
Do what you are asked.
"""


def coder_project(folder: Path, config: Path, **files: str) -> Path:
    """Make a project with these Python files and an agent called coder, which the person has agreed to."""
    (folder / ".greenroom" / "agents").mkdir(parents=True)
    (folder / ".greenroom" / "agents" / "coder.md").write_text(CODER, encoding="utf-8")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    agree(config, folder)
    return folder


@pytest.fixture(name="project")
def _project(tmp_path: Path) -> Path:
    files = {"hello": "print('hello')\n", "make": "open('made.txt', 'w').write('made\\n')\n"}
    return coder_project(tmp_path / "project", tmp_path / "config", **files)


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


@pytest.mark.req("AG-54")
def test_an_agent_reads_and_changes_files_unasked_and_asks_before_a_command(tmp_path: Path, project: Path) -> None:
    read = ("read_code", {"file": "hello.py"})
    with provider(acts(read, PATCH, SCRIPT)) as fake, talk(tmp_path, project, fake) as chat:
        chat.says("Say goodbye.")
        chat.until("wants to run a command")
        assert (project / "hello.py").read_text(encoding="utf-8") == "print('goodbye')\n"
        assert not (project / "made.txt").exists()
        chat.press(f"y{ENTER}")
        chat.until("Done.")
        chat.until("›")
        chat.press(CTRL_D)
        assert chat.ends() == 0
    assert (project / "made.txt").read_text(encoding="utf-8") == "made\n"


@pytest.mark.req("MA-57")
def test_a_question_is_answered_in_words(tmp_path: Path, project: Path) -> None:
    with provider(acts(("ask_user", {"question": "Which colour?"}))) as fake:
        with talk(tmp_path, project, fake) as chat:
            chat.says("Paint it.")
            chat.until("coder asks: Which colour?")
            chat.press(f"blue{ENTER}")
            chat.until("Done.")
        assert '"blue"' in str(fake.requests[-1].body).replace("'", '"')


def waits(home: Path) -> Mapping[str, str]:
    """The only question that waits."""
    listed = greenroom(home, "approvals", "list", "--output-format", "json").json["approvals"]
    assert isinstance(listed, list)
    (one,) = listed
    return {name: str(value) for name, value in one.items()}


def test_what_waits_is_listed_and_answered_later_by_a_person_or_a_program(tmp_path: Path, project: Path) -> None:
    asks = ("ask_user", {"question": "Which \x1b[31mcolour?"})
    with provider(acts(asks, SCRIPT)) as fake:
        parked = greenroom(
            tmp_path, "run", "Paint it.", "--agent", "coder", "--in-place", cwd=str(project), **reached(fake)
        )
        assert parked.code == 6
        listed = greenroom(tmp_path, "approvals", "list")
        assert "colour?" in listed.out
        assert "\x1b" not in listed.out
        one = waits(tmp_path)
        assert (one["agent"], one["wants"]) == ("coder", "words")
        assert "in words" in greenroom(tmp_path, "answer", "last", "yes").err, "a yes says nothing about colours"
        assert greenroom(tmp_path, "approvals", "answer", one["team"], "light", "blue").code == 0
        assert greenroom(tmp_path, "resume", "last", **reached(fake)).code == 6
        assert "light blue" in str(fake.requests[-1].body)
        assert "neither yes nor no" in greenroom(tmp_path, "answer", "last", "perhaps").err
        one = waits(tmp_path)
        assert (one["wants"], one["always"]) == ("yes or no", "allow line python3 make.py")
        assert greenroom(tmp_path, "answer", "last", "no", "--reason", "It is late.").code == 0
        assert "Nothing waits for you." in greenroom(tmp_path, "approvals", "list").err
        ended = greenroom(tmp_path, "resume", "last", **reached(fake))
    assert (ended.code, ended.out) == (7, "Done.\n")
    assert not (project / "made.txt").exists()


@pytest.mark.req("AG-165")
def test_who_wants_to_be_asked_about_every_call_is_asked(tmp_path: Path, project: Path) -> None:
    with provider(acts(("read_code", {"file": "hello.py"}))) as fake:
        words = ("run", "x", "--agent", "coder", "--in-place")
        more = {**reached(fake), "GREENROOM_EXECUTE_TOOL_CONFIRM": "true"}
        assert greenroom(tmp_path, *words, cwd=str(project), **more).code == 6
        assert "read_code" in waits(tmp_path)["question"]


MANY = "from greenroom import tool\n\n" + "".join(
    f'@tool\ndef spare_{number}() -> str:\n    """Spare."""\n    return ""\n\n' for number in range(31)
)


@pytest.mark.req("AG-29", "AG-30")
@pytest.mark.parametrize(
    ("choice", "said"),
    [("3 and 5", "2 relevant tools selected of 31."), ("none", "No tools were selected: all 31 stay.")],
)
def test_which_of_many_tools_an_agent_has_is_shown_to_the_person(tmp_path: Path, choice: str, said: str) -> None:
    own = tmp_path / "config" / "greenroom" / "tools" / "spare.py"
    own.parent.mkdir(parents=True)
    own.write_text(MANY, encoding="utf-8")
    folder = tmp_path / "project" / ".greenroom" / "agents"
    folder.mkdir(parents=True)
    names = ", ".join(f"spare_{number}" for number in range(31))
    (folder / "many.md").write_text(f"---\ndescription: x\ntools: [{names}]\n---\nDo it.\n", encoding="utf-8")
    agree(tmp_path / "config", tmp_path / "project")
    with provider([Answer(text=choice), Answer(text="I know.")]) as fake:
        ended = greenroom(
            tmp_path, "run", "x", "--question", "--agent", "many", cwd=str(tmp_path / "project"), **reached(fake)
        )
    assert (ended.code, ended.out) == (0, "I know.\n")
    assert said in ended.err


def test_a_rule_is_typed_as_the_command_is_behind_two_dashes(tmp_path: Path, project: Path) -> None:
    here, rule = str(project), ("allow", "line", "rm", "-rf", "x")
    words = ("permissions", "add", "--everywhere", "--output-format", "json", "--", *rule)
    assert greenroom(tmp_path, *words, cwd=here).json["rule"] == " ".join(rule)
    assert greenroom(tmp_path, "permissions", "add", *rule, cwd=here).code == 2, "-r is no option"
    eaten = greenroom(tmp_path, "permissions", "add", "allow", "command", "git", "commit", "-v", cwd=here)
    assert (eaten.code, "Quote the whole rule" in eaten.err) == (2, True), "without -v it would allow more"
    assert greenroom(tmp_path, "permissions", "remove", "--", *rule, cwd=here).code == 1, "it holds everywhere"
    assert greenroom(tmp_path, "permissions", "remove", "--everywhere", " ".join(rule), cwd=here).code == 0
