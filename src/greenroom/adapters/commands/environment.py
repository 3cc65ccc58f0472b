"""The environment of a command: what is let in by name, the rules that keep it from asking anybody, what is refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from greenroom.core.base.errors import WorldFault

PASSED: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT"),
        *("CARGO_HOME", "RUSTUP_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("LC_ALL", "LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_PAPER"),
        *("LC_NAME", "LC_ADDRESS", "LC_TELEPHONE", "LC_MEASUREMENT", "LC_IDENTIFICATION"),
    }
)
"""What a command gets of our own environment. A key that nobody thought of stays out."""

RULES: Final[Mapping[str, str]] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "PYTHONUNBUFFERED": "1",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}
"""Nobody sits there: no pager, no editor, no question, no colours. Not CI: builds do other things where it is set."""

GIT: Final[Mapping[str, str]] = {
    # Whoever can write files can write a folder that git takes for a repository, with a program in its settings that
    # every `git status` there would run.
    "safe.bareRepository": "explicit",
    "core.fsmonitor": "false",
}
"""Settings of git that are stronger than those of a file. Hooks are the person's own, and stay."""

MARK: Final = "GREENROOM_COMMAND"
"""Names the command in each of its processes, for people who wonder where one comes from."""

REFUSED: Final = re.compile(
    r"""(?: LD_.* | DYLD_.* | PYTHON.* | GIT_.* | BASH_.* | .*_PROXY | PERL5.* | RUBY(?:OPT|LIB)
        | ENV | SHELLOPTS | IFS | PS4 | PROMPT_COMMAND | ZDOTDIR | PATH | HOME | SHELL | EDITOR | VISUAL | .*PAGER
        | NODE_OPTIONS | NODE_PATH | JAVA_TOOL_OPTIONS | _JAVA_OPTIONS | JDK_JAVA_OPTIONS | LOCPATH | .*_ASKPASS
        | GREENROOM_.* )""",
    re.IGNORECASE | re.VERBOSE,
)
"""Names with which a harmless command line runs something else than it says."""

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def environment(own: Mapping[str, str], added: Mapping[str, str], *, also: Collection[str] = ()) -> dict[str, str]:
    """What a command gets: of our own only what is let in (`also` by a person's settings), the rules, what is added."""
    for name in added:
        check(name, added[name])
    passed = {name: own[name] for name in own if name in PASSED or name in also}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **passed, **RULES, **_settings_of_git(), **added}


def _settings_of_git() -> dict[str, str]:
    told = {"GIT_CONFIG_COUNT": str(len(GIT))}
    for number, (name, value) in enumerate(GIT.items()):
        told |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return told


def check(name: str, value: str) -> None:
    """Refuse a variable that is none, or that would change what a command line means."""
    if not NAME.fullmatch(name) or "\0" in value:
        raise WorldFault(f"{name!r} is no variable that a command can be given.")
    if REFUSED.fullmatch(name):
        raise WorldFault(f"The variable {name!r} may not be given to a command: it changes what runs. Leave it out.")
