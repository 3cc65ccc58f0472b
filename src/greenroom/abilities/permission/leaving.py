"""Which programs leave the machine or publish something. What is not on the list runs code, and may do so as well.

Lists of what is dangerous are never whole. So where nothing else keeps commands from the network, each is taken to
leave but for a few that only touch files; where walls do, the list of those that leave is what is left to be asked
about. Nothing is silent because it stands on a list.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from greenroom.abilities.permission.programs import INTERPRETERS, WRAPPERS, program, useful_prefix
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

STAYS: Final = _set(
    "cd pwd mkdir cp mv rm rmdir touch ln chmod ls cat head tail wc echo tee sleep true false exit"
)
"""Whatever words they are given, they talk to nobody and run nothing that somebody has written."""

_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://", re.IGNORECASE)
_HOST: Final = re.compile(r"https?://((?:[A-Za-z0-9-]+\.)*[A-Za-z0-9-]+(?::[0-9]+)?)(?:[/?#].*)?")
_HARMLESS: Final = re.compile(r"-[qsSfLvu]+|--(?:quiet|silent|show-error|fail|location|verbose|set-upstream)")
_FETCHES: Final = _set("curl wget")
_NAME: Final = re.compile(r"[A-Za-z0-9_.+-]+")


def leaves(command: Command) -> bool:
    """Whether this is known to talk to somebody, itself or by another program that stands among its words."""
    words = command.texts[command.assigned :]
    if not words:
        return False
    if _talks(words):
        return True
    name = program(words[0])
    return (name in WRAPPERS or name in INTERPRETERS) and _mentions(words[1:])


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


def _talks(words: Sequence[str]) -> bool:
    name = program(words[0])
    return name in LEAVES or any(word in SUBS.get(name, ()) for word in words[1:])


def _mentions(words: Sequence[str]) -> bool:
    """Whether a program that leaves, or an address, stands anywhere in the words of one that runs others."""
    text = " ".join(words)
    if _URL.search(text):
        return True
    names = [program(one) for one in _NAME.findall(text)]
    return any(_talks(names[at:]) for at, one in enumerate(names) if one in LEAVES or one in SUBS)
