"""The policy against a slow one: no random call is allowed that it would not allow.

The slow one never reads a command line: it is given the commands from which the line was made, and allows none that
was made with signs of the shell. It goes through all
rules one by one, and knows what is narrower by trying everything that there is.
"""

from __future__ import annotations

import random
from functools import cache
from itertools import product

import pytest

from greenroom.core.ports.tool import Target
from greenroom.policy import decision, rulebook
from greenroom.policy.rulebook import Layer
from greenroom.policy.rules import parse
from tests.policy.house import ME, card, policy

# Reaches no line that other tests do not, and to be measured takes it twice as long.
pytestmark = pytest.mark.no_cover

Words = tuple[str, ...]
Said = tuple[tuple[Layer, str], ...]
LAYERS: list[Layer] = ["built-in", "user", "project", "granted"]
PROGRAMS = ["ls", "cat", "git", "npm", "sudo", "X=1"]
WORDS = ["status", "push", "a.py", ".env", "-f", "/etc/x", "$X", "git"]
UNIVERSE: list[Words] = [(one, *rest) for size in range(4) for one in PROGRAMS for rest in product(WORDS, repeat=size)]
FILES = ["a.py", "docs/a.md", ".env", ".git/x", "../x", "/etc/x", "DOCS/.ENV", "docs/../.git/x", "./docs//a.md"]
PATTERNS = ["**", "docs/**", "docs/a.md", ".env", "**/.env", "/etc/**", "*.py"]
LEVELS = ["allow", "notify", "ask", "deny"]


# ------------------------------------------------------------------------------------------------------ the slow policy


@cache
def opens(rule: str, words: Words) -> bool:
    """Whether a rule that allows is about this command: its words come first, and the others are harmless."""
    first = parse(rule).words
    rest = words[max(1, len(first)) :]
    return words[: len(first)] == first and not any(word in {"/etc/x", ".env"} for word in rest)


@cache
def about(rule: str, words: Words) -> bool:
    """Whether a rule that tightens is certainly about this command."""
    first = parse(rule).words
    return words[: len(first)] == first


@cache
def narrower(loose: str, strict: str) -> bool:
    """Tried with every command that there is."""
    return all(about(strict, words) for words in UNIVERSE if words[: len(parse(loose).words)] == parse(loose).words)


def overruled(strict: tuple[Layer, str], said: Said, words: Words) -> bool:
    rank = LAYERS.index
    for layer, rule in said:
        ahead = rank(layer) - rank(strict[0])
        looser = LEVELS.index(rule.split()[0]) < LEVELS.index(strict[1].split()[0])
        if layer == "project" or ahead < 0 or not looser or not opens(rule, words) or not narrower(rule, strict[1]):
            continue
        if ahead > 0 or not narrower(strict[1], rule):
            return True
    return False


def may_run(words: Words, said: Said) -> bool:
    """Whether a command may run without a question."""
    rules = tuple((layer, rule) for layer, rule in said if " command " in rule)
    if any(rule.startswith("deny") and about(rule, words) for _, rule in rules):
        return False
    asks = [one for one in rules if one[1].startswith("ask") and about(one[1], words)]
    if any(not overruled(one, rules, words) for one in asks):
        return False
    return any(
        layer != "project" and rule.startswith(("allow", "notify")) and opens(rule, words) for layer, rule in rules
    )


def clean(path: str) -> str:
    """A path from the workspace's root; one that begins with / is outside."""
    known = {"../x": "/x", "docs/../.git/x": ".git/x", "./docs//a.md": "docs/a.md"}
    return known.get(path, path)


def hit(pattern: str, path: str, *, generous: bool) -> bool:
    name = clean(path).lower() if generous else clean(path)
    match pattern:
        case "**":
            return generous or not name.startswith("/")
        case "docs/**":
            return name.startswith("docs/")
        case "/etc/**":
            return name.startswith("/etc/")
        case "**/.env":
            return name.endswith(".env")
        case ".env":
            return name == ".env" or (generous and name.endswith("/.env"))
        case "*.py":
            return name.endswith(".py")
        case _:
            return name == pattern


def may_touch(path: str, said: Said, *, writes: bool) -> bool:
    rules = [(layer, rule.split()[0], rule.split()[2]) for layer, rule in said if " path " in rule]
    if any(level == "deny" and hit(pattern, path, generous=True) for _, level, pattern in rules):
        return False
    if writes and clean(path).startswith(".git/"):
        return False
    for layer, level, pattern in rules:
        if level == "ask" and hit(pattern, path, generous=True):
            loose = [
                (where, other)
                for where, what, other in rules
                if what in {"allow", "notify"} and where != "project" and hit(other, path, generous=False)
            ]
            if not any(answers((where, other), (layer, pattern)) for where, other in loose):
                return False
    opened = [
        other
        for where, what, other in rules
        if what in {"allow", "notify"} and where != "project" and hit(other, path, generous=False)
    ]
    secret = clean(path).lower().endswith(".env") or ".git/" in clean(path)
    if secret and not writes:
        return any(other.endswith(".env") for other in opened)
    return bool(opened) or not clean(path).startswith("/")


def answers(loose: tuple[Layer, str], strict: tuple[Layer, str]) -> bool:
    """Whether a person's rule for paths counts more than one that asks."""
    ahead = LAYERS.index(loose[0]) - LAYERS.index(strict[0])
    within = {path for path in FILES if hit(loose[1], path, generous=True)}
    around = {path for path in FILES if hit(strict[1], path, generous=True)}
    return within <= around and (ahead > 0 or (ahead == 0 and loose[1] != strict[1]))


# ------------------------------------------------------------------------------------------------------------- the fuzz


def some_rules(dice: random.Random) -> Said:
    def one() -> tuple[Layer, str]:
        words = dice.choice(UNIVERSE[: 6 + 48 + 384])
        plain = [word for word in words if word != "$X"]
        command = "*" if dice.random() < 0.1 else " ".join(plain)
        if command == "X=1" or dice.random() < 0.4:
            return dice.choice(LAYERS), f"{dice.choice(LEVELS)} path {dice.choice(PATTERNS)}"
        return dice.choice(LAYERS), f"{dice.choice(LEVELS)} command {command}"

    return tuple(one() for _ in range(dice.randrange(6)))


def quoted(dice: random.Random, word: str) -> str:
    """The same word, written in another way."""
    return dice.choice([word, word, word, f"'{word}'", f'"{word}"', "".join(f"\\{sign}" for sign in word)])


def some_line(dice: random.Random) -> tuple[str, Words | None]:
    """A command line, and its words if it has no sign of the shell."""
    words = dice.choice(UNIVERSE)
    text = " ".join(word if word in {"$X", "X=1"} else quoted(dice, word) for word in words)
    if dice.random() < 0.3:
        form = dice.choice(["{} && ls", "{}; ls", "{} | ls", "{}\nls", "({})", "ls $({})", "ls `{}`", "{} > a.py"])
        return form.format(text), None
    return text, None if "$X" in words or words[0] == "X=1" else words


def allowed_without_reason(dice: random.Random, calls: int, *, most: int = 3) -> tuple[int, list[object]]:
    """How many calls were allowed, and those that the slow policy would not allow: the first ones, at most so many."""
    count, wrong = 0, list[object]()
    said: Said = ()
    house = policy()
    for number in range(calls):
        if number % 20 == 0:
            said = some_rules(dice)
            house = policy({layer: [rule for where, rule in said if where == layer] for layer in LAYERS})
        if dice.random() < 0.3:
            path, writing = dice.choice(FILES), dice.random() < 0.5
            target = Target(kind="path", value=path, writes=writing)
            fine = may_touch(path, said, writes=writing)
        else:
            text, words = some_line(dice)
            target = Target(kind="command", value=text)
            fine = words is not None and may_run(words, said)
        if house.decide(ME, card(), (target,)).verdict in {"allow", "notify"}:
            count += 1
            if not fine:
                wrong.append((said, target))
        if len(wrong) == most:
            break
    return count, wrong


def test_no_random_call_is_allowed_that_a_slow_policy_would_not_allow() -> None:
    count, wrong = allowed_without_reason(random.Random(1), 2000)
    assert wrong == []
    assert count > 200


def test_the_fuzz_finds_a_policy_that_only_compares_beginnings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or it would prove nothing."""
    monkeypatch.setattr(decision, "_find_path_problem", lambda word, ground: "")
    monkeypatch.setattr(decision, "_decide_named_files", lambda book, read, ground: ())
    _, wrong = allowed_without_reason(random.Random(1), 1000)
    assert wrong


def test_the_fuzz_finds_a_policy_in_which_a_wide_rule_opens_a_narrow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rulebook, "is_narrower", lambda loose, strict: True)
    _, wrong = allowed_without_reason(random.Random(0), 3000, most=1)
    assert wrong


@pytest.mark.prove
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(10))
def test_no_call_of_very_many_is_allowed_that_a_slow_policy_would_not_allow(seed: int) -> None:
    count, wrong = allowed_without_reason(random.Random(seed), 20_000)
    assert wrong == []
    assert count > 1000
