"""What is decided about command lines, in tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from greenroom.abilities.permission import rules_policy
from tests.abilities.permission.house import ROOT, policy, run, user

CASES = Path(__file__).with_name("cases")


def lines(name: str) -> list[str]:
    text = (CASES / f"{name}.txt").read_text("utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("# ")]


@pytest.mark.parametrize("command", lines("looking"))
def test_every_command_is_asked_about_also_one_that_only_seems_to_look(command: str) -> None:
    ruling = run(policy(), command)
    assert ruling.verdict == "ask"
    assert ruling.why.startswith("It would ")


@pytest.mark.parametrize("command", lines("asked"))
def test_what_is_more_than_a_look_asks(command: str) -> None:
    ruling = run(policy(), command)
    assert ruling.verdict == "ask"
    assert ruling.why.startswith("It would ")


@pytest.mark.parametrize("command", lines("asked"))
def test_a_rule_for_looking_opens_nothing_else(command: str) -> None:
    """The known way past the prefixes of others: a harmless beginning that somebody has allowed."""
    allowed = user(*(f"allow command {words}" for words in ("git status", "ls", "cat", "echo", "rg")))
    ruling = run(allowed, command)
    meant = command in {
        "rg --hidden KEY",
        "rg -uuu KEY",
        "rg --no-ignore KEY",
        "rg -L needle",
        "cat src/*",
    }
    assert ruling.verdict == ("allow" if meant else "ask"), ruling.why


@pytest.mark.parametrize(
    "command",
    [
        "ls\nrm x",
        "ls\r\nrm x",
        "ls\rrm x",
        "ls\x00; rm x",
        "ls\x1b[2K",
        "g\u0456t status",
        "ls\u200b",
        "ls \u202ex",
        "ls\u00a0x",
        "ls\u2028rm x",
        "ls \ud800",
        "cat <<EOF\n$(rm x)\nEOF",
        "cat <<EOF\n`rm x`\nEOF",
        "cat <<A <<B\nA\nB\nrm x",
        "cat <<EOF; rm x\nEOF",
        "cat <<'EOF' | sh\nrm x\nEOF",
        "cat <<EOF\nrm\n EOF",
        "cat <<'EOF' 'a\nEOF\nrm x'",
        "echo $(cat <<EOF\nx\nEOF\n)",
        "ls \\\n; rm x",
        "ls #\\\nrm x",
        "ls '\n'; rm x",
        "",
        " ",
        "#",
        "\n\n",
    ],
)
def test_signs_that_hide_something_ask(command: str) -> None:
    assert run(policy(), command).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "cat <<'EOF' > notes.txt\nany $(thing) `here`\nEOF",
        "cat > a.txt <<EOF\nplain text\nEOF\nls",
        "cat <<-EOF\n\tx\n\tEOF",
        "ls \\\n  -l",
        "ls\n\n# a comment\npwd\n",
        "ls &&\n  pwd",
        'echo "two\nlines"',
    ],
)
def test_lines_that_are_plain_are_read(command: str) -> None:
    allowed = [f"allow command {name}" for name in ("cat", "ls", "pwd", "echo")]
    assert run(user(*allowed, "allow path *.txt write"), command).verdict == "allow"


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
]
TABLE = {
    "allow": """
npm test
npm test -- --watch
npm test && ls
git fetch origin
git stash
git push origin main
python build.py --fast -c conf
pytest
pytest -q -x tests/test_a.py
make test
timeout 60 pytest -q
CI=1 npm test
rm build x
rm build
python -m pytest -q
for f in a b; do echo $f; done
npm test 2>&1 | tail -5
cd web && npm test
(npm test)
git add -A && git status
""",
    "notify": """
cargo test
cargo test --lib && ls
""",
    "ask": """
cat secrets/x
npm test > out.txt
npm testify
npm install
npm test --script-shell=./evil
npm test; rm -rf x
npm test $(rm x)
npm test "$X"
npm test --prefix /tmp/evil
X=1 npm test
sudo npm test
env npm test
git commit -m x
git -c alias.x=!sh x
git -C ../other status
git --exec-path=/tmp x
git config core.pager ./evil
git clean -fdx
git bisect run ./evil
git submodule foreach rm x
git rebase -x ./evil main
git push origin --force
git push origin -f main
git push origin -uf main
git push origin --forc main
git push origin +main
git push origin :main
git push origin --delete main
git push origin --mirror
git push --receive-pack=./evil origin
python other.py
python -c "import build"
python
cat x | python build.py
pytest -p evil
pytest -c ../evil.ini
pytest --rootdir=/tmp
pytest /tmp/evil
pytest ../evil
make test SHELL=./evil
make -f evil.mk test
make test -C /tmp
timeout 60 rm x
timeout 6 pytest
CI=2 npm test
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
bash -c 'rm x'
bash -lc 'rm x'
ls | bash
bash <<< 'rm x'
python -m pytest -p evil
python -m http.server
cargo test --config evil
for f in a b; do echo $f; done; ls
/usr/bin/npm test
./npm test
git -c x=y reset --hard
git --no-pager reset
env shutdown
bash -c shutdown
npm test secrets/x
npm test --file=secrets/x
git add secrets
rm build .git/config
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
echo x > secrets/x
cat < secrets/x
echo x > .git/config
echo x > .git/hooks/pre-commit
echo x > .GIT/config
echo x > sub/.git/config
echo x > .greenroom/config.toml
npm test > .git/x
npm test > /home/me/project/.git/x
cd src && echo x > ../.git/config
for f in a; do ls; done; git reset
""",
}


@pytest.mark.parametrize(
    ("verdict", "command"), [(verdict, one) for verdict, some in TABLE.items() for one in some.strip().split("\n")]
)
def test_rules_mean_what_a_person_reads_in_them(verdict: str, command: str) -> None:
    ruling = run(user(*RULES), command)
    if command.startswith("for f in a; do ls; done; git"):
        verdict = "ask"  # what stands behind something unreadable is not looked at; a person sees it
    assert ruling.verdict == verdict, ruling.why


def test_more_words_than_anybody_reads_ask() -> None:
    for command in ("ls " + "a " * 400, "ls" + " >a" * 400):
        assert "more than 300 words" in run(user("allow command ls"), command).why


def test_what_an_allowed_command_would_write_over_or_reach_by_a_link_is_asked_about() -> None:
    rules = ["allow command cat", "allow command echo"]
    linked = rules_policy({"user": rules}, ROOT, lambda path: path.startswith("notes"))
    wide = rules_policy({"user": [*rules, "allow path **"]}, ROOT, lambda _: True)
    assert run(linked, "cat a.txt").verdict == "allow"
    assert "`notes/x` is a link that leads out of the workspace" in run(linked, "cat notes/x").why
    assert "write over `a.txt`, whatever stands there" in run(linked, "echo x > a.txt").why
    assert run(linked, "echo x > /dev/null").verdict == "allow"
    assert run(wide, "echo x > a").verdict == "ask"
    assert run(linked, "cat < notes").why.startswith("It would read `notes`, a link that leads out")
    assert run(user("allow command echo", "allow path out/** write"), "echo x > out/a").verdict == "allow"


def test_any_command_is_not_any_wrapper() -> None:
    wide = user("allow command *")
    assert run(wide, "frobnicate x").verdict == "allow"
    for command in (
        "sudo frobnicate",
        "sh x",
        "python x",
        "X=1 frobnicate",
        "frobnicate /etc",
        "for a in b; do c; done",
    ):
        assert run(wide, command).verdict == "ask", command


def test_the_reason_names_the_rule_that_nearly_allows() -> None:
    why = run(user("allow command git"), "git -c core.pager=x log").why
    assert why == (
        "It would run `git -c core.pager=x log`, which no rule allows "
        "(`allow command git` does not: `-c` makes it something else)."
    )


def test_the_reason_names_the_rule_that_forbids() -> None:
    ruling = run(user("deny command git push"), "git push origin main")
    assert ruling.rule == "deny command git push"
    assert ruling.why == "It would run `git push origin main`: your rule `deny command git push` forbids that."


def test_nothing_that_a_terminal_obeys_is_in_a_reason() -> None:
    assert all(map(str.isprintable, run(policy(), "rm \x1b[2K\u202e" + "x" * 5000).why.split("\n")))
    assert len(run(policy(), "rm " + "x" * 5000).why.split("\n")[0]) < 400
