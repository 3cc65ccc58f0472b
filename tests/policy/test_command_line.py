"""Which lines are plain, held against a real shell: a plain line gives a program exactly the words that rules see."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest

from greenroom.policy.command_line import MAX_LINE_CHARS, find_useful_prefix, match_rule, read_line, split_plain_words

SHELLS = [shell for shell in map(shutil.which, ("sh", "dash", "bash")) if shell]
WORDS = "a b -x --y=z x=1 'a' \"c\" 'e\"f' \"g'h\" '' \"\" * ? [a] ] {a,b} {1..3} {} @{1} ~ a~1 ~x # a#b ! : % ^"
SIGNS = '$x ${x} $(a) `a` \\a \\\\ \\$ "\\$" "\\a" "\\"" \' " ; & && | < > >> 2>&1 ( ) \\'
PIECES = [*WORDS.split(" "), *SIGNS.split(" "), "'a b'", '"c d"']
GLUE = ["", " ", " ", "  ", "\t", "\n", "\r", "\u00a0"]


def soups(count: int) -> list[str]:
    """Pieces of shell in no order."""
    dice = random.Random(7)
    return ["".join(dice.choice(PIECES) + dice.choice(GLUE) for _ in range(dice.randrange(1, 7))) for _ in range(count)]


def seen_by(shell: str, line: str) -> tuple[str, ...]:
    """The words that a shell gives to a program called p."""
    script = f"p() {{ printf '%s\\037' p \"$@\"; }}\np {line}\n"
    done = subprocess.run([shell, "-c", script], capture_output=True, text=True, check=True, timeout=20, cwd="/")
    return tuple(done.stdout.split("\x1f")[:-1])


@pytest.mark.parametrize("shell", SHELLS)
def test_a_plain_line_means_the_same_to_a_shell(shell: str) -> None:
    plain = [(line, words) for line in soups(4000) if (words := split_plain_words(f"p {line}")) is not None]
    assert len(plain) > 200
    for line, words in plain[:250]:
        assert seen_by(shell, line) == words, line


@pytest.mark.parametrize(
    "line",
    [
        *("ls; rm x", "ls && rm x", "ls | sh", "ls & rm x", "ls > x", "cat < x", "(ls)", "{ ls; }", "ls $(rm x)"),
        *("ls `rm x`", 'ls "$(rm x)"', "ls $X", "ls ${X}", "ls *", "ls ?", "ls [a]", "ls {a,b}", "ls {1..3}", "ls ~"),
        *("ls ~/x", "ls # x", "X=1 ls", "X+=1 ls", "! ls", "ls\nrm x", "ls\rrm x", "ls \\\n x", "ls 'x", 'ls "x'),
        *("", " ", "''", "'' x", "ls\x00", "ls\x1b[2K", "ls\u200b", "ls\u00a0x", "ls \ud800", 'ls "\\$x"', "a=(1 2)"),
        *("ls " + "a " * 400, "ls " + "a" * MAX_LINE_CHARS),
    ],
)
def test_a_sign_of_the_shell_makes_a_line_not_plain(line: str) -> None:
    assert read_line(line).words is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("git status", ("git", "status")),
        ("  git  commit -m 'a; b'\n", ("git", "commit", "-m", "a; b")),
        ('grep "a|b" x', ("grep", "a|b", "x")),
        ("git show HEAD~1 stash@{0} a#b", ("git", "show", "HEAD~1", "stash@{0}", "a#b")),
        ("find . -name x -exec ls {} +", ("find", ".", "-name", "x", "-exec", "ls", "{}", "+")),
        (r"echo a\ b\;c", ("echo", "a b;c")),
        ("dd of=x !", ("dd", "of=x", "!")),
    ],
)
def test_a_line_without_signs_of_the_shell_is_plain(line: str, words: tuple[str, ...]) -> None:
    assert read_line(line).words == words


RULE = ("git", "reset")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("git reset --hard", "certain"),
        ("/usr/bin/git reset", "certain"),
        ("GIT reset", "certain"),
        ("ls; git reset", "certain"),
        ("X=1 git reset", "certain"),
        ("ls $(git reset)", "certain"),
        ('g"i"t re\\set | cat', "certain"),
        ("for f in a; do ls; done; git reset", "certain"),
        ("git -c x=y reset", "maybe"),
        ("sudo git reset", "maybe"),
        ("bash -c 'git reset'", "maybe"),
        ("cd x && git --no-pager reset", "maybe"),
        ("git $X", "maybe"),
        ("$X reset", "maybe"),
        ("if a; then $X; fi", "maybe"),
        ("git status", ""),
        ("cd x && git status", ""),
        ("git commit -m 'reset it'", "maybe"),
        ("ls | grep reset", ""),
        ("echo $X", ""),
    ],
)
def test_a_rule_that_tightens_is_found_anywhere_in_a_line(line: str, expected: str) -> None:
    assert match_rule(RULE, read_line(line)) == expected


@pytest.mark.parametrize(
    ("line", "prefix"),
    [
        ("npm run build -- --x", "npm run build"),
        ("git commit -m x", "git commit"),
        ("git push origin main", "git push origin main"),
        ("pytest -q", ""),
        ("python x.py", ""),
        ("bash", ""),
        ("git -c x=y log", ""),
    ],
)
def test_what_is_worth_a_rule_is_a_program_with_the_names_that_follow_it(line: str, prefix: str) -> None:
    assert " ".join(find_useful_prefix(tuple(line.split()))) == prefix
