"""What is decided about command lines, in tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.policy.command_line import read_line
from greenroom.policy.policy import build_rules_policy
from tests.policy.house import ROOT, policy, run, user

CASES = Path(__file__).with_name("cases")


def lines(name: str) -> list[str]:
    text = (CASES / f"{name}.txt").read_text("utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("# ")]


@pytest.mark.parametrize("command", [*lines("looking"), *lines("asked")])
def test_every_command_is_asked_about_also_one_that_only_seems_to_look(command: str) -> None:
    ruling = run(policy(), command)
    assert ruling.verdict == "ask"
    assert ruling.why.startswith("It would ")


@pytest.mark.parametrize("command", [one for one in lines("asked") if read_line(one).words is None])
def test_a_rule_for_looking_opens_no_line_of_the_shell(command: str) -> None:
    """The known way past the prefixes of others: a harmless beginning that a person has allowed."""
    allowed = user(*(f"allow command {words}" for words in ("git status", "ls", "cat", "echo", "rg")))
    assert run(allowed, command).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("ls\nrm x", "ls\r\nrm x", "ls\rrm x", "ls\x00; rm x", "ls\x1b[2K", "g\u0456t status", "ls\u200b"),
        *("ls \u202ex", "ls\u00a0x", "ls\u2028rm x", "ls \ud800", "ls \\\n; rm x", "ls #\\\nrm x", "ls '\n'; rm x"),
        *("", " ", "#", "\n\n"),
        "cat <<EOF\n$(rm x)\nEOF",
        "cat <<EOF\n`rm x`\nEOF",
        "cat <<A <<B\nA\nB\nrm x",
        "cat <<EOF; rm x\nEOF",
        "cat <<'EOF' | sh\nrm x\nEOF",
        "cat <<EOF\nrm\n EOF",
        "cat <<'EOF' 'a\nEOF\nrm x'",
        "echo $(cat <<EOF\nx\nEOF\n)",
    ],
)
def test_signs_that_hide_something_ask(command: str) -> None:
    assert run(policy(), command).verdict == "ask"


RULES = [
    *(f"allow command {name}" for name in ("ls", "tail", "echo")),
    "allow command npm test",
    "allow command git",
    "allow command git push origin",
    "allow command python build.py",
    "allow command pytest",
    "allow command make test",
    "allow command timeout 60 pytest",
    "allow command CI=1 npm test",
    "allow command rm build",
    "allow command python -m pytest",
    "allow command bash",
    "notify command cargo test",
    "ask command git commit",
    "deny command git reset",
    "deny command shutdown",
    "deny path secrets/**",
    "allow line for f in a b; do echo $f; done",
    "notify line make all; make test",
]
TABLE = {
    "allow": """
npm test
npm test -- --watch
git fetch origin
git push origin main
git -c alias.x=!sh x
python build.py --fast -c conf
pytest -q -x tests/test_a.py
timeout 60 pytest -q
rm build x
python -m pytest -q
bash -c 'rm x'
for f in a b; do echo $f; done
""",
    "notify": """
cargo test
cargo test --lib
make all; make test
""",
    "ask": """
cat secrets/x
npm test > out.txt
npm test && ls
npm test 2>&1 | tail -5
cd web && npm test
(npm test)
npm testify
npm install
npm test; rm -rf x
npm test $(rm x)
npm test "$X"
npm test --prefix /tmp/evil
X=1 npm test
CI=1 npm test
sudo npm test
env npm test
git commit -m x
git -C ../other status
python other.py
python
cat x | python build.py
pytest --rootdir=/tmp
pytest /tmp/evil
pytest ../evil
make test -C /tmp
timeout 60 rm x
rm build/x
rm build /etc/x
rm build ../x
rm build of=/etc/x
rm build -o/etc/x
rm build --to=../x
rm build $HOME
rm build ~/x
rm build {a,/etc}
rm build *
ls | bash
bash <<< 'rm x'
for f in a b; do echo $f; done; ls
/usr/bin/npm test
./npm test
git -c x=y reset --hard
git --no-pager reset
env shutdown
bash -c shutdown
$(echo shut)down
npm test secrets/x
npm test --file=secrets/x
git add secrets
rm build .git/config
echo x > secrets/x
cat < secrets/x
echo x > .git/config
echo x > .GIT/config
echo x > sub/.git/config
echo x > .greenroom/config.toml
npm test > .git/x
cd src && echo x > ../.git/config
""",
    "deny": """
git reset --hard
git reset
/usr/bin/git reset
./git reset
GIT reset
X=1 git reset
npm test && git reset
ls; git reset
ls $(git reset)
ls `git reset`
(git reset)
ls | git reset
shutdown now
for f in a; do ls; done; git reset
""",
}


@pytest.mark.parametrize(
    ("verdict", "command"), [(verdict, one) for verdict, some in TABLE.items() for one in some.strip().split("\n")]
)
def test_rules_mean_what_a_person_reads_in_them(verdict: str, command: str) -> None:
    ruling = run(user(*RULES), command)
    assert ruling.verdict == verdict, ruling.why


def test_more_words_than_a_person_reads_are_not_covered_by_a_rule() -> None:
    assert run(user("allow command ls"), "ls " + "a " * 200).verdict == "allow"
    assert run(user("allow command ls"), "ls " + "a " * 400).verdict == "ask"


def test_a_line_that_is_too_long_asks_also_in_a_sandbox() -> None:
    walled = build_rules_policy({}, ROOT, is_sandboxed=lambda: True)
    assert run(walled, "ls; " * 1000).verdict == "allow"
    assert "more than 32,768 characters" in run(walled, "ls; " * 10_000).why


def test_what_an_allowed_command_reaches_by_a_link_is_asked_about() -> None:
    linked = build_rules_policy({"user": ["allow command cat"]}, ROOT, lambda path: path.startswith("notes"))
    assert run(linked, "cat a.txt").verdict == "allow"
    assert "`notes/x` is a link that leads out of the workspace" in run(linked, "cat notes/x").why


def test_any_command_is_any_plain_one() -> None:
    wide = user("allow command *")
    assert run(wide, "frobnicate x").verdict == "allow"
    for command in ("X=1 frobnicate", "frobnicate /etc", "for a in b; do c; done", "a; b", "cat .env"):
        assert run(wide, command).verdict == "ask", command


def test_the_reason_names_the_rule_that_nearly_allows() -> None:
    why = run(user("allow command git"), "git -C /etc log").why
    assert why == (
        "It would run `git -C /etc log`, which no rule allows "
        "(`allow command git` does not: `/etc` leads out of the workspace)."
    )


def test_the_reason_names_the_rule_that_forbids() -> None:
    ruling = run(user("deny command git push"), "git push origin main")
    assert ruling.rule == "deny command git push"
    assert ruling.why == "It would run `git push origin main`: your rule `deny command git push` forbids that."


def test_nothing_that_a_terminal_obeys_is_in_a_reason() -> None:
    assert all(map(str.isprintable, run(policy(), "rm \x1b[2K\u202e" + "x" * 5000).why.split("\n")))
    assert len(run(policy(), "rm " + "x" * 5000).why.split("\n")[0]) < 400
