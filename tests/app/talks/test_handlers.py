"""What a person types goes through handlers in order; one of them may end the chain."""

import pytest

from greenroom.app.conversation.typed import COMMANDS, Attached, Handled, builtin, handle, shell


@pytest.mark.req("AG-139")
def test_commands_come_before_the_shell_and_the_shell_before_files() -> None:
    seen: list[str] = []

    def named(name: str, mark: str) -> Handled:
        seen.append(name)
        return Handled(content=f"{mark}")

    handle("text", (builtin, shell, lambda text: named("files", text)))
    assert seen == ["files"], "the first two let it pass"
    assert handle("/help !ls @file", (builtin, shell)).command is not None
    assert handle("!cat @file", (builtin, shell, lambda text: named("files", text))).need_return
    assert seen == ["files"], "what is for the shell does not bring files along"


@pytest.mark.req("AG-140")
def test_a_handler_that_needs_to_return_ends_the_chain_with_its_content() -> None:
    after: list[str] = []

    def ending(text: str) -> Handled:
        return Handled(content=f"{text}, and no further", need_return=True)

    def later(text: str) -> Handled:
        after.append(text)
        return Handled(content=text)

    assert handle("so far", (ending, later)).content == "so far, and no further"
    assert after == []


def test_each_handler_gets_what_the_one_before_made_of_it() -> None:
    def louder(text: str) -> Handled:
        return Handled(content=f"{text}!", attached=(Attached(text=text, name=text),))

    done = handle("a", (louder, louder))
    assert (done.content, [one.name for one in done.attached]) == ("a!!", ["a", "a!"])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_understood(name: str) -> None:
    done = builtin(f"/{name}  what follows ")
    assert done.command is not None
    assert (done.command.name, done.command.argument, done.need_return) == (name, "what follows", True)


@pytest.mark.parametrize(("typed", "meant"), [("/quit", "exit"), ("/q", "exit"), ("/", "help"), ("/HELP", "help")])
def test_other_names_for_a_command_are_understood(typed: str, meant: str) -> None:
    done = builtin(typed)
    assert done.command is not None
    assert done.command.name == meant


@pytest.mark.parametrize("text", ["/etc/passwd is a file", " /help", "a /help", "/help\nand more", "", "1/2"])
def test_what_only_looks_like_a_command_is_said_to_the_agent(text: str) -> None:
    assert builtin(text) == Handled(content=text)


def test_an_unknown_command_is_said_with_the_nearest_one() -> None:
    assert builtin("/hlep").said == "There is no /hlep. Did you mean /help?"
    assert builtin("/xyzzy").said == "There is no /xyzzy. /help lists what there is."


def test_the_shell_is_not_there_yet_and_says_so() -> None:
    done = shell("!ls")
    assert done.need_return
    assert "cannot run any yet" in done.said
    assert shell(" !ls") == Handled(content=" !ls")
