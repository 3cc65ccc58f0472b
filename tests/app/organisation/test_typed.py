"""What a person types: commands with and without a slash, everything else a request, and nothing guessed."""

import pytest

from greenroom.app.organisation.typed import (
    COMMANDS,
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
    Unclear,
    understood,
)


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
        ("no 4 too dear", Decision(number=4, words="no too dear")),
        ("/no too dear", Decision(number=None, words="no too dear")),
        ("to wu: how are you?", Address(names=("wu",), text="how are you?", how="to")),
        ("to ann, ben: tea is ready", Address(names=("ann", "ben"), text="tea is ready", how="to")),
        ("/to wu how are you?", Address(names=("wu",), text="how are you?", how="to")),
        ("tell @wu: stop", Address(names=("wu",), text="stop", how="tell")),
        ("/ask wu: a poem", Address(names=("wu",), text="a poem", how="ask")),
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
    ],
)
def test_what_a_line_means(line: str, meant: Typed) -> None:
    assert understood(line) == meant


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
    ],
)
def test_what_is_unclear_says_how_to_type_it(line: str, said: str) -> None:
    meant = understood(line)
    assert isinstance(meant, Unclear)
    assert said in meant.why


def test_every_command_that_is_offered_is_understood() -> None:
    for name, about in COMMANDS.items():
        meant = understood(f"/{name}")
        assert not (isinstance(meant, Unclear) and "There is no command" in meant.why), about
