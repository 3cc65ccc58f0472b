"""The reader of command lines, held against a real shell: nothing runs that it has not seen."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from greenroom.abilities.permission.shell.reader import read
from greenroom.abilities.permission.shell.script import Command, Script, Word

BASH = shutil.which("bash")
RECORD = r"""
command_not_found_handle() { printf '%s\0' "$@" $'\1' >&9; }
PATH=/nonexistent
number=0
while IFS= read -r -d '' script; do
  ( exec 9>"$LOG/$number"; eval "$script"; wait ) </dev/null >/dev/null 2>&1
  number=$((number + 1))
done
"""
"""No program is found, so bash hands each one that it would run to a function, which writes it down."""

WORDS = "p q r p q r a b c x=1 'a' \"b\" -o * ? [ ] {a,b} ~ EOF 'EOF' $x ${x} ${x:-p} $'p' $((1)) { } [[ ]]"
SIGNS = (
    "! # \\ ' \" ` $ $( ( ) ; ;; & && || | |& < > >> << <<- <<< <( >( 2> &> 2>&1 >| if then fi for do done case esac in"
)
PIECES = [*WORDS.split(" "), *SIGNS.split(" "), "time", "function"]
GLUE = ["", " ", " ", " ", "\n", "\t", ";", "\\\n"]


def soup(dice: random.Random) -> str:
    """Pieces of shell in no order."""
    return "".join(dice.choice(PIECES) + dice.choice(GLUE) for _ in range(dice.randrange(1, 12)))


def quoted(dice: random.Random, word: str) -> str:
    """The same word, written in another way."""
    form = dice.randrange(6)
    if form == 0:
        return f"'{word}'"
    if form == 1:
        return f'"{word}"'
    return "".join(f"\\{sign}" if form == 2 and sign.isalpha() else sign for sign in word)


def line(dice: random.Random, depth: int = 3) -> str:
    """A line that a person could write."""
    words = [
        quoted(dice, dice.choice("pqr")),
        *(quoted(dice, dice.choice(["a", "b c", "d;e", "$", "#"])) for _ in "ab"),
    ]
    simple = " ".join(
        word if (" " not in word and ";" not in word) or word[0] in "'\"" else f"'{word}'" for word in words
    )
    if not depth:
        return simple
    inner = line(dice, depth - 1)
    forms = [
        f"{simple} {dice.choice(['&&', '||', ';', '|', '&', chr(10)])} {inner}",
        f"({inner})",
        f"p $({inner})",
        f'p "$({inner})"',
        f"p <({inner})",
        f"{simple} >a; {inner}",
        f"{simple} <<'E'\n{inner}\nE\n{inner}",
        f"{simple} # {inner}\n{inner}",
        f"p `{inner}`",
        f"x=1 {simple} 2>&1",
        inner,
    ]
    return dice.choice(forms)


def seen(command: Command, words: tuple[str, ...]) -> bool:
    """Whether this is the command that ran; what nobody could know of its words is not compared."""
    known = command.plain[command.assigned :]
    whole = len(command.plain) == len(command.words)
    return words == known if whole else words[: len(known)] == known


def ran(scripts: list[str], folder: Path) -> Iterator[list[tuple[str, ...]]]:
    """The programs that bash would have run, for each script."""
    assert BASH is not None
    log, work = folder / "log", folder / "work"
    log.mkdir()
    work.mkdir()
    given = b"".join(script.encode() + b"\0" for script in scripts)
    subprocess.run(
        [BASH, "--norc", "-c", RECORD], input=given, cwd=work, env={"LOG": str(log)}, check=False, timeout=100
    )
    for number in range(len(scripts)):
        calls = (log / str(number)).read_bytes().decode().split("\1\0")
        yield [tuple(call.split("\0")[:-1]) for call in calls[:-1]]


def compare(scripts: list[str], folder: Path) -> int:
    """How many scripts could be read and did run something. Fails for one that ran more than was read."""
    counted = 0
    for script, calls in zip(scripts, ran(scripts, folder), strict=True):
        found: Script = read(script)
        if not found.unsure:
            counted += bool(calls)
            for call in calls:
                assert any(seen(command, call) for command in found.commands), (script, call)
    return counted


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
def test_bash_runs_nothing_that_was_not_read(tmp_path: Path) -> None:
    dice = random.Random(7)
    counted = compare([soup(dice) if at % 2 else line(dice) for at in range(600)], tmp_path)
    assert counted > 200


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
def test_the_comparison_finds_a_reader_that_only_splits_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would prove nothing."""

    def split(text: str) -> Script:
        return Script(commands=(Command(words=tuple(Word(text=word) for word in text.split())),))

    monkeypatch.setattr("tests.abilities.permission.test_shell.read", split)
    dice = random.Random(7)
    with pytest.raises(AssertionError):
        compare([line(dice) for _ in range(50)], tmp_path)


@pytest.mark.prove
@pytest.mark.timeout(600)
@pytest.mark.skipif(BASH is None, reason="there is no bash here")
@pytest.mark.parametrize("seed", range(20))
def test_bash_runs_nothing_that_was_not_read_in_many_tries(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    assert compare([soup(dice) if at % 2 else line(dice) for at in range(2000)], tmp_path) > 500


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p a\\ b 'c d' \"e f\"", ("p", "a b", "c d", "e f")),
        ("p 'a'\"b\"c", ("p", "abc")),
        ('p "a\\"b\\$c\\d"', ("p", 'a"b$c\\d')),
        ("p ''", ("p", "")),
        ("p a#b", ("p", "a#b")),
        ("p a~b {}", ("p", "a~b", "{}")),
        ("p $", ("p", "$")),
        ("p \\\n a", ("p", "a")),
    ],
)
def test_words_are_what_the_program_gets(text: str, words: tuple[str, ...]) -> None:
    found = read(text)
    assert (found.commands[0].plain, found.unsure) == (words, "")


@pytest.mark.parametrize(
    "text", ["p $\\\nx", "p &\\\n& q", "p a\\\nb", 'p "$\\\nx"', "p &\\\n>a q", "p >\\\n>a", "\\\n\\\np$\\\n(q)"]
)
def test_signs_that_are_broken_over_lines_are_not_certain(text: str) -> None:
    assert "broken over two lines" in read(text).unsure


def test_files_that_the_shell_opens_are_seen() -> None:
    command = read("p <in >out 2>>err 3>&1 >&- &>all >|forced <>both").commands[0]
    assert command.reads == ("in", "both")
    assert command.writes == ("out", "err", "all", "forced", "both")


def test_commands_that_hide_in_others_are_seen() -> None:
    found = read('a $(b `c`) "$(d)" <(e) | (f; g) & h')
    assert sorted(command.texts[0] for command in found.commands) == list("abcdefgh")
    assert found.unsure == ""


@pytest.mark.parametrize("word", ["test -v", "[ -v", "printf -v", "read", "unset -v", "export", "mapfile", "wait -p"])
@pytest.mark.parametrize("name", ["'a[$(touch x)]'", '"a[\\`touch x\\`]"'])
def test_what_a_shell_reads_a_second_time_is_not_certain(word: str, name: str) -> None:
    assert "may run what stands in brackets" in read(f"{word} {name}").unsure
    assert read(f"{word} a").unsure == ""


def test_brackets_of_other_programs_are_only_words() -> None:
    assert read("grep 'a[$]' x").unsure == ""
