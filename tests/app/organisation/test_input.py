"""What a person types: a slash begins a command, every other line is for the manager, and nothing is guessed."""

import pytest

from greenroom.app.organisation.input import (
    Address,
    ByHand,
    Decision,
    InGroup,
    Leaves,
    Looks,
    NewGroup,
    Plain,
    Reply,
    Report,
    Resumes,
    Typed,
    names_in,
    parse_line,
)
from greenroom.app.organisation.words import commands
from greenroom.core.base.errors import Refused

AGENTS = frozenset({"wu", "ann", "ben", "copa"})


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("/answer 2 Green.", Reply(number=2, text="Green.")),
        ("/answer 2\nGreen.\nAnd hot.", Reply(number=2, text="Green.\nAnd hot.")),
        ("/done 3 things today", Report(number=3, text="things today")),
        ("/failed 3 No cup.", Report(number=3, text="No cup.", failed=True)),
        ("/yes", Decision(number=None, words="yes")),
        ("/n", Decision(number=None, words="no")),
        ("/yes 4", Decision(number=4, words="yes")),
        ("/yes 4 always", Decision(number=4, words="always")),
        ("/no 4", Decision(number=4, words="no")),
        ("/no 4 too dear", Decision(number=4, words="no too dear")),
        ("/no too dear", Decision(number=None, words="no too dear")),
        ("/to wu: how are you?", Address(names=("wu",), text="how are you?", how="to")),
        ("/to wu how are you?", Address(names=("wu",), text="how are you?", how="to")),
        ("/to ann, ben: tea is ready", Address(names=("ann", "ben"), text="tea is ready", how="to")),
        ("/to ann，ben：茶好了", Address(names=("ann", "ben"), text="茶好了", how="to")),
        ("/tell @wu: stop", Address(names=("wu",), text="stop", how="tell")),
        ("/ask wu: a poem", Address(names=("wu",), text="a poem", how="ask")),
        ("/group us: Ask @wu.", InGroup(group="us", text="Ask @wu.")),
        ("/form us: ann, @ben", NewGroup(group="us", people=("ann", "ben"))),
        ("/form us： ann，ben", NewGroup(group="us", people=("ann", "ben"))),
        ('/tool read_code {"file": "a.py"}', ByHand(tool="read_code", given={"file": "a.py"})),
        ("/tool list_files in t2.s1 {}", ByHand(tool="list_files", given={}, stage="t2.s1")),
        ("/tool list_files", ByHand(tool="list_files", given={})),
        ("/inbox", Looks(what="inbox")),
        ("/history wu", Looks(what="history", about="wu")),
        ("/?", Looks(what="help")),
        ("/resume", Resumes()),
        ("/EXIT", Leaves()),
        ("/quit", Leaves()),
    ],
)
def test_what_a_command_means(line: str, meant: Typed) -> None:
    assert parse_line(line) == meant


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Write me a tea guide", "Write me a tea guide"),
        ("answer 2 Green.", "answer 2 Green."),
        ("tell ann: tea is ready", "tell ann: tea is ready"),
        ("yes", "yes"),
        ("inbox", "inbox"),
        (" /help", "/help"),
        ("//etc/hosts is broken", "/etc/hosts is broken"),
    ],
)
def test_every_other_line_is_for_the_manager(line: str, text: str) -> None:
    assert parse_line(line) == Plain(text=text)


@pytest.mark.parametrize(
    ("line", "said", "chinese"),
    [
        ("/anser 2 x", "Did you mean /answer?", "没有命令"),
        ("/inbx", "Did you mean /inbox? To say it as it is, begin the line with a space.", "请在行首加一个空格。"),
        ("/xyzzy", "/help says what can be typed", "没有命令"),
        ("/", "There is no command /.", "没有命令"),
        ("/" + "x" * 3000, f"There is no command /{'x' * 40}….", "没有命令"),
        ("/etc/hosts is broken", "There is no command /etc/hosts.", "没有命令"),
        ("/answer two x", "answer N TEXT", "请这样输入"),
        ("/answer 2", "answer N TEXT", "请这样输入"),
        (f"/answer {'9' * 5000} x", "answer N TEXT", "请这样输入"),
        ("/done", "done N REPORT", "请这样输入"),
        ("/to wu:", "to NAME: TEXT", "请这样输入"),
        ("/to", "to NAME: TEXT", "请这样输入"),
        ("/form us", "form GROUP ann, ben", "请这样输入"),
        ("/history", "history NAME", "请这样输入"),
        ("/tool", "tool NAME", "请这样输入"),
        ("/tool a b {}", "tool NAME", "请这样输入"),
        ("/tool a {b}", "is no JSON", "不是JSON"),
        ('/tool a {"b": ' + "[" * 100_000, "is no JSON", "不是JSON"),
    ],
)
def test_a_wrong_command_is_refused_with_how_to_type_it(line: str, said: str, chinese: str) -> None:
    for language, words in (("en", said), ("zh", chinese)):
        with pytest.raises(Refused) as refused:
            parse_line(line, language)
        assert refused.value.rejected.code == "unclear"
        assert words in refused.value.rejected.why


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("请@wu看一下，@ann你好", ("wu", "ann")),
        ("Ask @wu.", ("wu",)),
        ("@wux a@wu @wu.de", ("wux", "wu.de")),
        ("hello @wu and @wu", ("wu",)),
    ],
)
def test_agents_are_named_with_an_at_sign(text: str, named: tuple[str, ...]) -> None:
    assert names_in(text, AGENTS) == named


@pytest.mark.parametrize("name", commands("en"))
def test_every_command_that_is_offered_is_known(name: str) -> None:
    lines = (f"/{name}", f"/{name} 1 x", f"/{name} us: x", f"/{name} x")
    assert any(_is_parsed(line) for line in lines)


def _is_parsed(line: str) -> bool:
    try:
        parse_line(line)
    except Refused:
        return False
    return True
