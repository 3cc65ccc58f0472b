"""The file of a new agent: each of its lines works, and a tool that does not exist is said before anything runs."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.provider import Beside, provider, reached
from tests.e2e.terminal import Ended, greenroom
from tests.fake_openai import Answer


@pytest.fixture(scope="module")
def fake() -> Iterator[Beside]:
    with provider(Answer(text="Fine. !!!COMPLETE!!!")) as server:
        yield server


class Desk:
    """A folder with the file of the new agent `ann`."""

    def __init__(self, folder: Path, fake: Beside) -> None:
        self.folder, self.fake = folder, fake
        (folder / "work").mkdir()
        self.file = Path(self.call("agents", "new", "ann").out.strip())
        self.text = self.file.read_text()
        self.commented = [line for line in self.text.splitlines() if re.match(r"# \w+: ", line)]

    def call(self, *words: str) -> Ended:
        return greenroom(self.folder / "home", *words, cwd=str(self.folder / "work"), **reached(self.fake))

    def write(self, text: str) -> None:
        self.file.write_text(text)
        assert self.call("trust", "--yes").code == 0


@pytest.fixture
def desk(tmp_path: Path, fake: Beside) -> Desk:
    return Desk(tmp_path, fake)


def test_every_line_of_the_template_works_alone_and_with_the_others(desk: Desk) -> None:
    assert len(desk.commented) >= 10
    everything = desk.text
    for line in desk.commented:
        everything = everything.replace(line, line[2:])
    for text in (*(desk.text.replace(line, line[2:]) for line in desk.commented), everything):
        desk.write(text)
        run = desk.call("run", "Hello.", "--agent", "ann", "--yes")
        shown, prompt = desk.call("agents", "show", "ann"), desk.call("prompt", "show", "ann")
        assert (run.code, shown.code, prompt.code) == (0, 0, 0), (text, run, shown, prompt)
        assert "exist" not in run.err + shown.out + shown.err + prompt.err


def test_a_tool_that_does_not_exist_is_an_error_with_the_file_and_the_near_name(desk: Desk) -> None:
    asked = len(desk.fake.requests)
    desk.write(desk.text.replace("# tools: [read_code]", "tools: [read_cod]"))
    for words in (("run", "Hello.", "--agent", "ann"), ("run", "Hello.", "--agent", "ann", "--in-place")):
        ended = desk.call(*words)
        assert ended.code == 3
        assert ended.err.splitlines()[-1] == (
            f"Error: {desk.file} names the tool `read_cod`, which does not exist. Did you mean `read_code`?"
        )
    assert len(desk.fake.requests) == asked


def test_an_agent_to_call_that_does_not_exist_is_an_error_with_the_file_and_the_near_name(desk: Desk) -> None:
    asked = len(desk.fake.requests)
    desk.write(desk.text.replace("# calls: [ann]", "calls: [an]"))
    for words in (("run", "Hello.", "--agent", "ann"), ("chat", "Hello.", "--agent", "ann")):
        ended = desk.call(*words)
        assert ended.code == 3, ended
        assert ended.err.splitlines()[-1] == (
            f"Error: {desk.file} calls the agent `an`, which does not exist. Did you mean `ann`?"
        )
    assert len(desk.fake.requests) == asked
    assert not desk.call("runs").out.strip().splitlines()[1:]


def test_the_agents_that_need_no_file_can_be_called(desk: Desk) -> None:
    desk.write(desk.text.replace("# calls: [ann]", "calls: [coder, assistant]"))
    for words in (("run", "Hello.", "--agent", "ann", "--question"), ("chat", "Hello.", "--agent", "ann")):
        ended = desk.call(*words)
        assert ended.code == 0, ended
        assert "There is no agent" not in ended.err
