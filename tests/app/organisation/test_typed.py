"""What a person types: commands with and without a slash, everything else a request, and nothing guessed."""

import pytest

from greenroom.app.organisation.commands import COMMANDS, COMMANDS_ZH
from greenroom.app.organisation.typed import (
    Address,
    ByHand,
    Decision,
    Here,
    InGroup,
    Leaves,
    Looks,
    NewGroup,
    Plain,
    Reply,
    Report,
    Resumes,
    Typed,
    Unclear,
    understood,
)

HERE = Here(
    letters={2: "question", 3: "duty", 4: "approval", 5: "stage"},
    agents=frozenset({"wu", "ann", "ben", "copa"}),
    groups=frozenset({"us"}),
    tools=frozenset({"read_code", "list_files"}),
)
"""What a person can mean in these tests."""


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("Write me a tea guide", Plain(text="Write me a tea guide")),
        ("answer the phone when it rings", Plain(text="answer the phone when it rings")),
        ("tasks for tomorrow: buy tea", Plain(text="tasks for tomorrow: buy tea")),
        ("to be or not to be", Plain(text="to be or not to be")),
        ("group the results by year", Plain(text="group the results by year")),
        ("tool support is what I want", Plain(text="tool support is what I want")),
        ("yes please", Plain(text="yes please")),
        (" /help", Plain(text="/help")),
        ("answer 2 Green.", Reply(number=2, text="Green.")),
        ("/answer 2 Green.", Reply(number=2, text="Green.")),
        ("done 3 It is mild.", Report(number=3, text="It is mild.")),
        ("failed 3 No cup.", Report(number=3, text="No cup.", failed=True)),
        ("yes", Decision(number=None, words="yes")),
        ("n", Decision(number=None, words="no")),
        ("yes 4", Decision(number=4, words="yes")),
        ("yes 4 always", Decision(number=4, words="always")),
        ("no 4", Decision(number=4, words="no")),
        ("no 4 Too dear", Decision(number=4, words="no Too dear")),
        ("/no 4 too dear", Decision(number=4, words="no too dear")),
        ("/done 3 things today", Report(number=3, text="things today")),
        ("answer 4 42", Reply(number=4, text="42")),
        ("/to nobody: hello", Address(names=("nobody",), text="hello", how="to")),
        (" done 3 things today", Plain(text="done 3 things today")),
        ("/no too dear", Decision(number=None, words="no too dear")),
        ("to wu: how are you?", Address(names=("wu",), text="how are you?", how="to")),
        ("to ann, ben: tea is ready", Address(names=("ann", "ben"), text="tea is ready", how="to")),
        ("/to wu how are you?", Address(names=("wu",), text="how are you?", how="to")),
        ("tell @wu: stop", Address(names=("wu",), text="stop", how="tell")),
        ("/ask wu: a poem", Address(names=("wu",), text="a poem", how="ask")),
        ("group us: 请@wu看一下，@ann你好", InGroup(group="us", text="请@wu看一下，@ann你好", named=("wu", "ann"))),
        ("group us: Ask @wu.", InGroup(group="us", text="Ask @wu.", named=("wu",))),
        ("group us: @wux a@wu @wu.de", InGroup(group="us", text="@wux a@wu @wu.de", named=("wux", "wu.de"))),
        ("group us: hello @wu and @wu", InGroup(group="us", text="hello @wu and @wu", named=("wu",))),
        ("/form us: ann, @ben", NewGroup(group="us", people=("ann", "ben"))),
        ('tool read_code {"file": "a.py"}', ByHand(tool="read_code", given={"file": "a.py"})),
        ("tool list_files in t2.s1 {}", ByHand(tool="list_files", given={}, stage="t2.s1")),
        ("tool list_files", ByHand(tool="list_files", given={})),
        ("inbox", Looks(what="inbox")),
        ("/history wu", Looks(what="history", about="wu")),
        ("?", Plain(text="?")),
        ("/?", Looks(what="help")),
        ("/resume", Resumes()),
        ("exit", Leaves()),
        ("/quit", Leaves()),
        ("resume", Resumes()),
        ("//etc/hosts is broken", Plain(text="/etc/hosts is broken")),
        ("one", Plain(text="one")),
        ("file", Plain(text="file")),
        ("Tasks!", Plain(text="Tasks!")),
        ("answer 2\nGreen.\nAnd hot.", Reply(number=2, text="Green.\nAnd hot.")),
        ("to ann，ben：茶好了", Address(names=("ann", "ben"), text="茶好了", how="to")),
        ("/form us： ann，ben", NewGroup(group="us", people=("ann", "ben"))),
    ],
)
def test_what_a_line_means(line: str, meant: Typed) -> None:
    assert understood(line, HERE) == meant


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/anser 2 x", "Did you mean /answer?"),
        ("/xyzzy", "/help says what can be typed"),
        ("/answer two x", "answer N TEXT"),
        ("answer 2", "answer N TEXT"),
        ("/done", "done N REPORT"),
        ("/to wu:", "to NAME: TEXT"),
        ("/to", "to NAME: TEXT"),
        ("/form us", "form GROUP ann, ben"),
        ("/history", "history NAME"),
        ("/tool", "tool NAME"),
        ("/tool a b {}", "tool NAME"),
        ("tool a {b}", "is no JSON"),
        ('tool a {"b": ' + "[" * 100_000, "is no JSON"),
        ("/inbx", "Did you mean /inbox? To say it as it is, begin the line with a space."),
        ("inbx", "That was not sent. Did you mean /inbox?"),
        ("Taks", "That was not sent. Did you mean /tasks?"),
        ("answer", "That was not sent. Type it like this: /answer N TEXT"),
        ("history", "That was not sent. Type it like this: /history NAME"),
        (f"answer {'9' * 5000} x", "answer N TEXT"),
        ("@wu how are you?", "That was not sent. Type it like this: /to NAME: TEXT"),
        ("/" + "x" * 3000, f"There is no command /{'x' * 40}…."),
        ("/", "There is no command /."),
        ("/etc/hosts is broken", "There is no command /etc/hosts."),
    ],
)
def test_what_is_unclear_says_how_to_type_it(line: str, said: str) -> None:
    meant = understood(line, HERE)
    assert isinstance(meant, Unclear)
    assert said in meant.why


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("done 3 things today, now plan the rest", "If you mean letter 3, begin the line with a slash: /done 3 …"),
        ("Failed 3 times already, please look why", "begin the line with a slash: /failed 3 …"),
        ("No 4 cups are alike, write about that", "begin the line with a slash: /no 4 …"),
        ("yes 4 of them", "begin the line with a slash: /yes 4 …"),
        ("answer 2 questions for me: when and where?", "begin the line with a slash: /answer 2 …"),
        ("done 9 Mild.", "No letter 9 waits for you."),
        ("yes 9", "No letter 9 waits for you."),
        ("done 2 Mild.", "Letter 2 is not answered with `done`"),
        ("failed 4 No cup.", "Letter 4 is not answered with `failed`"),
        ("answer 3 Mild.", "Letter 3 is not answered with `answer`"),
        ("answer 5 Mild.", "Letter 5 is not answered with `answer`"),
        ("yes 2", "Letter 2 is not answered with `yes`"),
        ("no 3", "Letter 3 is not answered with `no`"),
        ("tell me: what is green tea?", "There is no agent 'me'."),
        ("ask wu, around: who knows tea?", "There is no agent 'around'."),
        ("group work: how do we do it?", "There is no group 'work'."),
        ("tool chain", "You have no tool 'chain'. To say it as it is, begin the line with a space."),
        ("tell Ben: tea is ready", "There is no agent 'Ben'. Did you mean 'ben'?"),
        ("tell \u0441\u043e\u0440\u0430: tea", "Did you mean 'copa'?"),
    ],
)
def test_a_sentence_that_begins_like_a_command_is_neither_done_nor_sent(line: str, said: str) -> None:
    meant = understood(line, HERE)
    assert isinstance(meant, Unclear)
    assert meant.why.startswith("That was not sent. ")
    assert said in meant.why
    assert meant.why.endswith("To say it as it is, begin the line with a space.")
    chinese = understood(line, HERE, "zh")
    assert isinstance(chinese, Unclear)
    assert chinese.why.startswith("未发送。")
    assert chinese.why.endswith("请在行首加一个空格。")


def test_how_a_stage_went_on_is_reported_like_a_duty() -> None:
    assert understood("done 5 Mild.", HERE) == Report(number=5, text="Mild.")


@pytest.mark.parametrize("line", ["/anser 2 x", "/xyzzy", "/answer two x", "inbx", "answer", "tool a {b}"])
def test_what_is_unclear_is_said_in_chinese_to_who_speaks_it(line: str) -> None:
    meant = understood(line, HERE, "zh")
    assert isinstance(meant, Unclear)
    assert any(words in meant.why for words in ("没有命令", "请这样输入", "未发送", "不是JSON"))


def test_every_command_is_told_of_in_both_languages() -> None:
    assert COMMANDS_ZH.keys() == COMMANDS.keys()
    takes = {name: ("  " in about, "  " in COMMANDS_ZH[name]) for name, about in COMMANDS.items()}
    assert all(one == other for one, other in takes.values()), takes


def test_every_command_that_is_offered_is_understood() -> None:
    for name, about in COMMANDS.items():
        meant = understood(f"/{name}", HERE)
        assert not (isinstance(meant, Unclear) and "There is no command" in meant.why), about
