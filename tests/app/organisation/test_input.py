"""What a person types: a slash begins a command, every other line is for the manager, and nothing is guessed."""

import pytest

from greenroom.app.organisation.input import (
    DecisionCommand,
    ExitCommand,
    GroupMessageCommand,
    ManagerText,
    MessageCommand,
    NewGroupCommand,
    ReplyCommand,
    ReportCommand,
    ResumeCommand,
    ToolCommand,
    TypedCommand,
    ViewCommand,
    find_mentions,
    parse_line,
)
from greenroom.app.organisation.phrases import command_phrases
from greenroom.core.base.errors import RefusedError

AGENTS = frozenset({"wu", "ann", "ben", "copa"})


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("/answer 2 Green.", ReplyCommand(number=2, text="Green.")),
        ("/answer 2\nGreen.\nAnd hot.", ReplyCommand(number=2, text="Green.\nAnd hot.")),
        ("/done 3 things today", ReportCommand(number=3, text="things today")),
        ("/failed 3 No cup.", ReportCommand(number=3, text="No cup.", failed=True)),
        ("/yes", DecisionCommand(number=None, words="yes")),
        ("/n", DecisionCommand(number=None, words="no")),
        ("/yes 4", DecisionCommand(number=4, words="yes")),
        ("/yes 4 always", DecisionCommand(number=4, words="always")),
        ("/no 4", DecisionCommand(number=4, words="no")),
        ("/no 4 too dear", DecisionCommand(number=4, words="no too dear")),
        ("/no too dear", DecisionCommand(number=None, words="no too dear")),
        ("/to wu: how are you?", MessageCommand(names=("wu",), text="how are you?", mode="to")),
        ("/to wu how are you?", MessageCommand(names=("wu",), text="how are you?", mode="to")),
        ("/to ann, ben: tea is ready", MessageCommand(names=("ann", "ben"), text="tea is ready", mode="to")),
        ("/to ann，ben：茶好了", MessageCommand(names=("ann", "ben"), text="茶好了", mode="to")),
        ("/tell @wu: stop", MessageCommand(names=("wu",), text="stop", mode="tell")),
        ("/ask wu: a poem", MessageCommand(names=("wu",), text="a poem", mode="ask")),
        ("/group us: Ask @wu.", GroupMessageCommand(group="us", text="Ask @wu.")),
        ("/form us: ann, @ben", NewGroupCommand(group="us", people=("ann", "ben"))),
        ("/form us： ann，ben", NewGroupCommand(group="us", people=("ann", "ben"))),
        ('/tool read_code {"file": "a.py"}', ToolCommand(tool="read_code", arguments={"file": "a.py"})),
        ("/tool list_files in t2.s1 {}", ToolCommand(tool="list_files", arguments={}, stage="t2.s1")),
        ("/tool list_files", ToolCommand(tool="list_files", arguments={})),
        ("/inbox", ViewCommand(what="inbox")),
        ("/history wu", ViewCommand(what="history", about="wu")),
        ("/?", ViewCommand(what="help")),
        ("/resume", ResumeCommand()),
        ("/EXIT", ExitCommand()),
        ("/quit", ExitCommand()),
    ],
)
def test_what_a_command_means(line: str, meant: TypedCommand) -> None:
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
    assert parse_line(line) == ManagerText(text=text)


@pytest.mark.parametrize(
    ("line", "said", "chinese"),
    [
        ("/anser 2 x", "Did you mean /answer?", "没有命令"),
        ("/inbx", "Did you mean /inbox? To send it as text, start the line with a space.", "请在行首加一个空格。"),
        ("/xyzzy", "/help lists the commands", "没有命令"),
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
        ("/tool a {b}", "is not JSON", "不是JSON"),
        ('/tool a {"b": ' + "[" * 100_000, "is not JSON", "不是JSON"),
    ],
)
def test_a_wrong_command_is_refused_with_how_to_type_it(line: str, said: str, chinese: str) -> None:
    for language, words in (("en", said), ("zh", chinese)):
        with pytest.raises(RefusedError) as refused:
            parse_line(line, language)
        assert refused.value.rejection.code == "unclear"
        assert words in refused.value.rejection.why


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
    assert find_mentions(text, AGENTS) == named


@pytest.mark.parametrize("name", command_phrases("en"))
def test_every_command_that_is_offered_is_known(name: str) -> None:
    lines = (f"/{name}", f"/{name} 1 x", f"/{name} us: x", f"/{name} x")
    assert any(_is_parsed(line) for line in lines)


def _is_parsed(line: str) -> bool:
    try:
        parse_line(line)
    except RefusedError:
        return False
    return True
