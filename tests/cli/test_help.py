import shlex

import pytest

from greenroom.cli.app import COMMANDS, DAILY, GROUPS, SECTIONS, CommandEntry, LazyCommand, build_command, load_command
from greenroom.cli.exit_codes import EXIT_MEANINGS, Exit
from greenroom.cli.help import parse_help
from tests.cli.conftest import Type

every_command = pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
ALIASES = {"approvals answer": "answer"}
"""Commands whose function, and so its docstring, belongs to another command."""


@every_command
def test_the_help_of_a_command_says_what_it_does_and_how_it_ends(greenroom: Type, entry: CommandEntry) -> None:
    shown = greenroom(*entry.name.split(), "--help")
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].startswith(f"Usage: greenroom {entry.name}")
    assert lines[2] == f"  {entry.help}"
    heads = [line for line in lines if line and not line.startswith(" ")]
    assert [head for head in heads[1:] if head != "Arguments:"] == ["Examples:", "Options:", "Exit codes:"]
    for option in ("--home", "--output-format", "--quiet", "--verbose", "--help"):
        assert option in shown.out
    assert " <" not in shown.out, "no Python types"
    assert "{" not in lines[0], "no braces around what is required"


@every_command
def test_a_help_screen_fits_into_80_columns(
    greenroom: Type, entry: CommandEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = greenroom(*entry.name.split(), "--help").out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if line.startswith(" " * 20)] == [], "an option takes one line"


@every_command
def test_the_line_in_the_list_of_commands_is_the_first_line_of_the_help(entry: CommandEntry) -> None:
    text = parse_help(load_command(entry).__doc__ or "").text
    first, _, details = text.partition("\n\n")
    assert first == entry.help
    assert details, "more than the line that the reader has seen already"


@every_command
def test_examples_are_commands_that_exist(entry: CommandEntry) -> None:
    examples = parse_help(load_command(entry).__doc__ or "").examples
    assert len(set(examples)) >= 2
    for example in examples:
        _, found, command = f" {example}".rpartition(" greenroom ")
        words = shlex.split(command.partition(" >")[0])
        name = ALIASES.get(entry.name, entry.name).split()
        assert found
        assert words[: len(name)] == name
        root = build_command()
        with root.make_context("greenroom", [], resilient_parsing=True) as context:
            LazyCommand(entry).make_context(entry.name, words[len(name) :], context)


@every_command
def test_exit_codes_of_a_command_are_listed(entry: CommandEntry) -> None:
    codes = [code for code, _ in parse_help(load_command(entry).__doc__ or "").exit_codes]
    assert {Exit.DONE, Exit.USAGE} <= set(codes)
    assert codes == sorted(set(codes))


def test_the_exit_codes_of_a_run_are_a_list(greenroom: Type) -> None:
    _, _, codes = greenroom("run", "--help").out.partition("\n\nExit codes:\n")
    assert [line.split()[0] for line in codes.splitlines()] == list("01234567")
    assert "  0  verified, or a question was answered\n" in codes


def test_a_docstring_is_split_into_its_parts() -> None:
    text, examples, codes = parse_help(
        """Do it.

        More
        of it.

        Examples:
          greenroom do it
          echo it | greenroom do -

        Exit codes: 0; 1 it was done
        before; 2.
        """
    )
    assert text == "Do it.\n\nMore\nof it."
    assert examples == ("greenroom do it", "echo it | greenroom do -")
    assert codes == ((0, "done"), (1, "it was done before"), (2, EXIT_MEANINGS[Exit.USAGE]))


def test_without_a_command_the_daily_commands_are_shown(greenroom: Type) -> None:
    ended = greenroom()
    assert ended.code == 2
    assert ended.err == greenroom("--help").out == greenroom("help").out
    for section, names in DAILY.items():
        assert section in SECTIONS
        assert f"\n{section} " in ended.err
        for name in names:
            assert f" {name} " in ended.err


def test_help_all_shows_sections_options_and_exit_codes(greenroom: Type) -> None:
    shown = greenroom("help", "--all")
    assert shown.code == 0
    heads = [line[:-1] for line in shown.out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert heads == [*SECTIONS, "Options", "Exit codes"]
    for code, meaning in EXIT_MEANINGS.items():
        assert f"  {int(code):<5}{meaning}\n" in shown.out


@pytest.mark.parametrize("words", [("run",), ("org", "start"), ("org",), ("help",)], ids=" ".join)
def test_help_of_a_command_is_its_help_option(greenroom: Type, words: tuple[str, ...]) -> None:
    assert greenroom("help", *words) == greenroom(*words, "--help")


def test_help_of_an_unknown_command_suggests_one(greenroom: Type) -> None:
    ended = greenroom("help", "rnu")
    assert ended.code == 2
    assert "No such command 'rnu'. Did you mean 'run'?" in ended.err
    assert greenroom("help", "run", "--all").code == 2


@pytest.mark.parametrize("name", GROUPS)
def test_the_help_of_a_group_lists_its_commands_first(greenroom: Type, name: str) -> None:
    shown = greenroom(name, "--help").out
    commands, _, options = shown.partition("\nOptions:\n")
    assert f"  {GROUPS[name]}\n" in commands
    assert all(entry.help in commands for entry in COMMANDS if entry.name.startswith(f"{name} "))
    assert f"greenroom {name} COMMAND --help" in options
