"""What "always" proposes: it would have helped, and it opens nothing that nobody would expect."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.core.ports.tool import Target
from tests.policy.house import ME, card, policy, reach, run, touch, user
from tests.policy.test_commands import lines

PROPOSALS = {
    "git push origin main": "allow command git push origin main",
    "git push": "allow command git push",
    "git push https://example.org/x main": "allow command git push",
    "git commit -m 'a b'": "allow command git commit",
    "npm test": "allow command npm test",
    "npm run build -- --x": "allow command npm run build",
    "pytest -q tests": "allow line pytest -q tests",
    "python -m pytest -q": "allow line python -m pytest -q",
    "uv run ruff check .": "allow command uv run ruff check",
    "python build.py": "allow line python build.py",
    "bash x.sh": "allow line bash x.sh",
    "sudo npm test": "allow command sudo npm test",
    "env X=1 npm test": "allow line env X=1 npm test",
    "ls | xargs rm": "allow line ls | xargs rm",
    "rm -rf build": "allow line rm -rf build",
    "make": "allow line make",
    "cargo test --lib": "allow command cargo test",
    "gh pr view 5": "allow command gh pr view",
    "CI=1 npm test": "allow line CI=1 npm test",
    "npm test && git push origin main": "allow line npm test && git push origin main",
    "cat .env": "allow line cat .env",
    "cat .env .npmrc": "allow line cat .env .npmrc",
    "echo x > /tmp/out.txt": "allow line echo x > /tmp/out.txt",
    "for f in a; do b; done": "allow line for f in a; do b; done",
    "a\nb": "",
    "npm test $X": "allow line npm test $X",
    "npm test /etc/x": "allow line npm test /etc/x",
}


@pytest.mark.parametrize(("command", "grant"), PROPOSALS.items())
def test_the_narrowest_useful_rule_is_proposed(command: str, grant: str) -> None:
    assert run(policy(), command).grant == grant


ODD = [*map(chr, range(32)), "\x7f", "\x85", "\xa0", "\xad", "\u2028", "\u2029", "\u200b", "\u202e", "\u3000", "\ufeff"]


@pytest.mark.parametrize("odd", ODD, ids=ascii)
def test_nothing_is_proposed_that_is_not_one_plain_line(odd: str) -> None:
    written = ("rm {}x", "npm run {}x", "make a{}b", "rm 'a{}allow command *'", "npm test && make {}x", "X={} npm test")
    rulings = [run(policy(), one.format(odd)) for one in written]
    rulings += [touch(policy(), f"/etc/a{odd}b/c/d/e/f"), reach(policy(), f"exa{odd}mple.org")]
    foreign = card(f"mcp__x__{odd}allow", "mcp", "mcp:x")
    rulings.append(policy().decide(ME, foreign, (Target(kind="tool", value=foreign.spec.name),)))
    for grant in (one.grant for one in rulings):
        assert all(map(str.isprintable, grant.split("\n"))), grant
        assert len(grant.split("\n")) <= 2
        assert "command *" not in grant


@pytest.mark.parametrize("command", sorted({*lines("asked"), *PROPOSALS}))
def test_a_proposal_would_have_helped(command: str) -> None:
    grant = run(policy(), command).grant
    if grant:
        assert run(policy(), command, [grant]).verdict == "allow"


NASTY = """
{0}; rm -rf x
{0} && rm -rf x
{0} || curl evil
{0} | sh
{0} & rm x
{0} $(rm x)
{0} `rm x`
{0} "$(rm x)"
{0} <(rm x)
{0} > /etc/passwd
{0} > .git/hooks/pre-commit
{0} 2> ~/x
{0} $X
{0} ~/x
{0} /etc/passwd
{0} ../../x
{0} --output=/etc/x
{0} {{a,b}}
{0} <<EOF
X=1 {0}
LD_PRELOAD=./x {0}
env {0}
xargs {0}
sh -c '{0}'
./{0}
/tmp/{0}
if true; then {0}; fi
x{0}
""".strip().split("\n")
SIBLINGS = {
    "git push origin main": "git push|git push evil main|git -c x=y push origin|git pull origin|git push https://evil/x",
    "git commit -m x": "git -c core.hooksPath=x commit|git commit-tree x",
    "npm test": "npm|npm run evil|npm install x|npm exec x|npm publish",
    "npm run build": "npm run|npm run evil|npm run build:evil",
    "pytest -q": "pytest -p evil|pytest -c x|pytest3|pytest -q -p evil",
    "python -m pytest": "python|python -c x|python -m http.server|python x.py|python -m pip install x",
    "python build.py": "python|python -c x|python other.py|python build.py --more|python -i build.py|python -m build",
    "uv run pytest": "uv run|uv run python|uv add x|uv pip install x|uv run --with evil pytest",
    "make test": "make|make install|make -f x test",
    "rm -rf build": "rm -rf .|rm -rf build src|rm build|rm -rf /",
    "curl https://a.org": "curl https://b.org|curl -o x https://a.org|curl",
    "sudo npm test": "sudo rm x|sudo|sudo -u root npm test",
    "bash x.sh": "bash|bash -c x|bash y.sh|bash x.sh y",
}


@pytest.mark.parametrize("command", SIBLINGS)
def test_a_proposal_opens_no_nasty_sibling(command: str) -> None:
    grant = run(policy(), command).grant
    assert grant
    siblings = [*SIBLINGS[command].split("|"), *(form.format(command) for form in NASTY)]
    opened = [one for one in siblings if run(policy(), one, [grant]).verdict == "allow"]
    assert opened == []


BARE = ["git", "npm", "python", "bash", "sudo", "env", "xargs", "make", "timeout", "node"]
WORDS = [*BARE, *["test", "run", "push", "origin", "-c", "-f", "x", ".", "5", "-e"]]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_no_bare_interpreter_or_wrapper_is_ever_proposed(words: list[str]) -> None:
    grant = run(policy(), " ".join(words)).grant
    assert grant not in [f"allow command {bare}" for bare in BARE]


def test_paths_and_hosts_are_proposed_as_narrow_as_is_useful() -> None:
    assert touch(policy(), ".env").grant == "allow path .env read"
    assert touch(policy(), "/etc/hosts", writes=True).grant == "allow path /etc/hosts write"
    assert touch(policy(), "/home/me/notes.txt").grant == "allow path /home/me/notes.txt read"
    assert touch(policy(), "/usr/lib/python3/os.py").grant == "allow path /usr/lib/python3/** read"
    assert touch(policy(), "/home/me/.config/app/x").grant == "allow path /home/me/.config/app/x read"
    assert touch(policy(), "/tmp/a*b [x]", writes=True).grant == "allow path '/tmp/a[*]b [[]x]' write"
    assert reach(policy(), "docs.python.org:443").grant == "allow host docs.python.org"
    assert reach(policy(), "docs.python.org:8080").grant == "allow host docs.python.org:8080"


def test_a_folder_that_was_opened_keeps_its_secrets() -> None:
    grant = touch(policy(), "/home/me/other/project/a.py").grant
    assert touch(policy(), "/home/me/other/project/b.py", grants=[grant]).verdict == "allow"
    assert touch(policy(), "/home/me/other/project/.env", grants=[grant]).verdict == "ask"
    assert touch(policy(), "/home/me/other/project/b.py", writes=True, grants=[grant]).verdict == "ask"


def test_nothing_is_proposed_that_would_not_help() -> None:
    assert run(user("deny command git push"), "git push origin main").grant == ""
    assert run(user("deny path secrets/**", "ask command make"), "make secrets").grant == "allow line make secrets"


@pytest.mark.parametrize(
    "command",
    [
        "X='\nallow command *\n' npm test",
        "npm run 'a\nallow command *'",
        "make 'x\nallow tool *'",
        "cat '.env\nallow tool *'",
    ],
)
def test_no_proposal_smuggles_in_another_rule(command: str) -> None:
    assert run(policy(), command).grant == ""


def test_a_grant_that_cannot_be_read_lets_nobody_in() -> None:
    assert run(policy(), "npm test", ["allow everything", "allow command npm test; ls"]).verdict == "ask"
