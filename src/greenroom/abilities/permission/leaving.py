"""Which programs leave the machine or publish something. What is not on the list runs code, and may do so as well.

Lists of what is dangerous are never whole. So where nothing else keeps commands from the network, each is taken to
leave but for a few that only touch files; where walls do, the list of those that leave is what is left to be asked
about. Nothing is silent because it stands on a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from greenroom.abilities.permission.programs import RUNNERS, SHELLS, WRAPPERS, program, runs_others, useful_prefix
from greenroom.abilities.permission.shell.reader import read
from greenroom.abilities.permission.shell.script import Command


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


LEAVES: Final = _set(
    "curl wget aria2c axel http https httpie xh ssh sshpass scp sftp mosh ftp lftp tftp telnet nc ncat netcat socat "
    "nmap dig nslookup host drill ping traceroute whois mail mailx mutt sendmail msmtp swaks gh glab hub tea aws "
    "gcloud gsutil az doctl heroku fly flyctl vercel netlify wrangler firebase kubectl helm terraform tofu pulumi "
    "ansible ansible-playbook rclone s3cmd s5cmd restic borg docker podman nerdctl skopeo twine hf huggingface-cli "
    "wandb kaggle redis-cli mongosh xdg-open open smbclient rsync ngrok cloudflared websocat grpcurl lynx "
    "w3m links"
)
"""Whatever they are told, they talk to somebody."""

SUBS: Final[Mapping[str, frozenset[str]]] = {
    "git": _set("push fetch pull clone ls-remote submodule send-email request-pull lfs svn p4 send-pack daemon"),
    "npm": _set("publish unpublish install i add ci update audit login adduser view search dist-tag owner token exec"),
    "pnpm": _set("publish install i add update audit login dlx"),
    "yarn": _set("publish install add upgrade audit login dlx npm"),
    "bun": _set("publish install add update x"),
    "pip": _set("install download index search wheel"),
    "pip3": _set("install download index search wheel"),
    "uv": _set("add sync lock publish pip tool python"),
    "poetry": _set("publish add install update lock"),
    "pdm": _set("publish add install update lock"),
    "hatch": _set("publish"),
    "flit": _set("publish"),
    "conda": _set("install create update search"),
    "cargo": _set("publish install login search fetch update add yank owner"),
    "go": _set("get install mod"),
    "gem": _set("push install update fetch yank"),
    "composer": _set("install require update"),
    "mvn": _set("deploy"),
    "gradle": _set("publish"),
    "dotnet": _set("nuget restore add"),
    "openssl": _set("s_client"),
    "gpg": _set("--send-keys --recv-keys --refresh-keys --keyserver"),
    "apt": _set("install update upgrade"),
    "apt-get": _set("install update upgrade source download"),
    "brew": _set("install update upgrade fetch"),
}
"""By program, what makes it talk to somebody."""

STAYS: Final = _set("cd pwd mkdir cp mv rm rmdir touch ln chmod ls cat head tail wc echo tee sleep true false exit")
"""Whatever words they are given, they talk to nobody and run nothing that somebody has written."""

_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://", re.IGNORECASE)
_HOST: Final = re.compile(r"https?://((?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(?::[0-9]+)?)(?:[/?#].*)?")
_HARMLESS: Final = re.compile(r"-[qsSfLvu]+|--(?:quiet|silent|show-error|fail|location|verbose|set-upstream)")
_FETCHES: Final = _set("curl wget")
_OWN: Final = re.compile(r"-.*|[A-Za-z_][A-Za-z0-9_]*=.*|[0-9.]+[a-z]?|0x[0-9a-f]+|/[A-Za-z]", re.DOTALL)
"""What stands between a wrapper and what it runs: options, variables, numbers and times."""

_BLANK: Final = re.compile(r"\s")
_RUN: Final = re.compile(r"-[A-Za-z]*c|--command")
_LOOKS: Final = re.compile(r"command -[vV]+")
_BEGINS: Final = re.compile(
    r"(?:^|[;|&(){`!\n])\s*(?:(?:do|then|else|elif|if|while|until|time|exec)\s+)*([^;|&()`\n]+)"
)
"""Where a command begins in a line that cannot be read."""

OPERANDS: Final[Mapping[str, int]] = {
    "flock": 1,
    "chroot": 1,
    "taskset": 1,
    "chrt": 1,
    "su": 2,
    "runuser": 2,
    "tmux": 1,
    "screen": 1,
}
"""Words of its own that a wrapper takes before what it runs."""

DEEPEST: Final = 8
"""Lines in words of lines. Who goes deeper has something to hide."""

MOST: Final = 200
"""Words of a program that runs others; what comes later nobody looks for."""


def leaves(command: Command) -> bool:
    """Whether this is known to talk to somebody, itself or by another program that it is told to run."""
    return _leaves(command.texts[command.assigned :], DEEPEST)


def stays(command: Command) -> bool:
    """Whether it is certain that it talks to nobody."""
    return not command.assigned and len(command.plain) == len(command.words) > 0 and command.texts[0] in STAYS


def places(command: Command) -> tuple[str, ...]:
    """Where a command would go, as a person is asked about it: a yes means nothing else than what they have read.

    That is a host only where nothing but hosts is said, a part of a program (`git push origin`) only without options
    that could mean another place; else it is the command, word for word.
    """
    words = command.texts[command.assigned :]
    plain = len(command.plain) == len(command.words) and not command.assigned
    said = [word for word in words[1:] if not _HARMLESS.fullmatch(word)]
    named = [_HOST.fullmatch(word) for word in said]
    if plain and words[0] in _FETCHES and named and all(named):
        return tuple(f"host {found[1].lower()}" for found in named if found is not None)
    if plain and words[0] in SUBS and said and not any(word.startswith("-") or ":/" in word for word in said):
        return (" ".join(("command", words[0], *said[:2])),)
    useful = useful_prefix(words) if plain and not leaves(command) else 0
    return (" ".join(("command", *(words[:useful] if useful else command.texts))),)


def _leaves(words: Sequence[str], depth: int) -> bool:
    """Also what it runs is looked at, and what that runs, each once."""
    todo, seen = [0], set[int]()
    while todo:
        at = todo.pop()
        if at in seen or at >= len(words):
            continue
        seen.add(at)
        if not depth or at >= MOST or _goes(words[at:], depth):
            return True
        todo += [at + more for more in _run_by(words[at:])]
    return False


def _goes(words: Sequence[str], depth: int) -> bool:
    """Whether a program talks to somebody by itself, or by a line that it is given in one word."""
    if _LOOKS.fullmatch(" ".join(words[:2])):
        return False
    name = program(words[0])
    if _talks(words) or (_BLANK.search(words[0]) and _in_code(words[0], depth)):
        return True
    if name in SHELLS:
        return any(_in_code(code, depth) for code in _code(words))
    # Which words the code of others has says nothing: many are those of every language.
    return runs_others(name) and any(map(_URL.search, words))


def _run_by(words: Sequence[str]) -> Iterator[int]:
    """Where what a program runs may begin."""
    if (program(words[0]), *words[1:2]) in RUNNERS:
        yield 2
    elif program(words[0]) in WRAPPERS and not _LOOKS.fullmatch(" ".join(words[:2])):
        yield from _positions(words)


def _talks(words: Sequence[str]) -> bool:
    name = program(words[0])
    if name not in SUBS:
        return name in LEAVES
    parts = [words[at] for at in _positions(words)]
    return not SUBS[name].isdisjoint((*parts, *(one for one in words if one.startswith("--"))))


def _positions(words: Sequence[str]) -> Iterator[int]:
    """Where behind a program the one may stand that it runs, or its own part: not behind a word that is neither an
    option, nor perhaps the value of one, nor something that the program itself takes before."""
    takes = OPERANDS.get(program(words[0]), 0)
    for at, word in enumerate(words[1:], 1):
        if _OWN.fullmatch(word):
            continue
        yield at
        if not words[at - 1].startswith("-"):
            takes -= 1
            if takes < 0:
                return


def _code(words: Sequence[str]) -> Iterator[str]:
    """What a shell is to run: behind `-c`, and whatever is no single word."""
    for before, word in pairwise(words):
        if _BLANK.search(word) or (_RUN.fullmatch(before) and not word.startswith("-")):
            yield word


def _in_code(text: str, depth: int) -> bool:
    script = read(text)
    if any(_leaves(one.texts[one.assigned :], depth - 1) for one in script.commands):
        return True
    return bool(script.unsure) and any(_talks(found.split()) for found in _BEGINS.findall(text))
