"""What is known of programs: which run other programs, which words make them do more than their name says.

An *escape* is a word that turns a program into something else (`git -c`, `find -exec`, `git push --force`): a rule
covers it only if it names it. Lists of what is dangerous are never whole, so nothing is allowed by standing on none of
them; they only narrow what a person has allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


WRAPPERS: Final = _set(
    "sudo doas su pkexec runuser env xargs parallel nohup timeout nice ionice chrt taskset numactl prlimit stdbuf "
    "setsid time command exec builtin eval source . busybox toybox watch entr strace ltrace gdb lldb valgrind script "
    "expect rlwrap unshare nsenter chroot bwrap firejail proot fakeroot flock ssh sshpass mosh screen tmux at batch "
    "crontab systemd-run start-stop-daemon dbus-run-session xvfb-run caffeinate npx bunx uvx pipx docker podman "
    "nerdctl kubectl cmd cmd.exe powershell pwsh winpty wsl"
)
"""Programs that run the program that stands behind them."""

SHELLS: Final = _set("sh bash dash zsh ksh mksh ash fish csh tcsh rbash")
INTERPRETERS: Final = SHELLS | _set(
    "python python2 python3 pypy pypy3 ipython perl ruby irb node nodejs deno bun php lua luajit tclsh wish awk gawk "
    "mawk nawk sed ed ex vi vim nvim emacs r rscript julia ghci runghc osascript java jshell groovy scala clojure "
    "elixir iex erl escript guile racket sbcl octave gnuplot sqlite3 psql mysql bc dc m4"
)
"""Programs whose words, or whose input, are programs."""

_VERSIONED: Final = re.compile(r"((?:python|pypy|perl|ruby|lua|php|node)[0-9]?)[0-9.]*(?:\.exe)?")
_OPTION: Final = re.compile(r"-[A-Za-z0-9]+")
_SETTING: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*[:+?]?=")

ESCAPES: Final[Mapping[str, frozenset[str]]] = {
    program: _set(words)
    for program, words in {
        "git": "--upload-pack --receive-pack --exec --ext-diff --output --open-files-in-pager --no-index --template "
        "--separate-git-dir --config --config-env --exec-path --git-dir --work-tree",
        "git commit": "--amend --no-verify -n --fixup --squash",
        "git add": "-f --force --chmod",
        "git push": "-f --force --force-with-lease --force-if-includes -d --delete --mirror --prune --all --branches "
        "--repo --no-verify",
        "git fetch": "-f --force --prune -p -P --prune-tags --all --multiple --update-head-ok -u",
        "git pull": "-f --force --prune -p --all --rebase -r --no-verify -s --strategy",
        "git rebase": "-x -i --interactive",
        "git bisect": "run",
        "git submodule": "foreach",
        "find": "-exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from",
        "fd": "-x --exec -X --exec-batch",
        "rg": "--pre --hostname-bin -z --search-zip",
        "sort": "-o --output --compress-program -T --temporary-directory",
        "tar": "--to-command --checkpoint-action -I --use-compress-program --rsh-command -F --info-script "
        "--new-volume-script -P --absolute-names",
        "rsync": "-e --rsh --rsync-path --delete --remove-source-files",
        "make": "-f --file --makefile -C --directory --eval -I --include-dir NAME=",
        "just": "-f --justfile -d --working-directory --shell --shell-arg --set NAME=",
        "npm": "--script-shell --prefix -C --node-options --userconfig --globalconfig --workspace -w",
        "pnpm": "--script-shell --dir -C --node-options --shell-emulator -r --recursive --filter",
        "yarn": "--cwd --script-shell --use-yarnrc",
        "bun": "--cwd --shell --preload -r --config -c",
        "cargo": "--config --manifest-path -Z -C --target-dir --out-dir --allow-dirty --fix",
        "go": "-exec -toolexec -vettool -overlay -o -C -modfile",
        "pytest": "-p -c -o --config-file --rootdir --confcutdir --override-ini --pyargs --basetemp --pdbcls "
        "--pastebin --junit-xml --junitxml --log-file --rsyncdir --tx --import-mode",
        "ruff": "--config --cache-dir --output-file -o --fix --fix-only --unsafe-fixes --add-noqa",
        "mypy": "--config-file --python-executable --junit-xml --cache-dir --install-types",
        "tsc": "-p --project -b --build --plugins",
        "eslint": "-c --config --rulesdir --resolve-plugins-relative-to --plugin -f --format --parser -o --output-file "
        "--cache-location --fix --fix-dry-run",
        "prettier": "--config --plugin --plugin-search-dir -w --write",
        "black": "--config --code",
        "isort": "--settings-file --settings-path --sp",
        "mvn": "-f --file -s --settings -gs --global-settings -D --define -t --toolchains",
        "gradle": "-I --init-script -p --project-dir -b --build-file -c --settings-file -D -P -g --include-build",
        "dotnet": "--settings -s -p --property",
        "pre-commit": "-c --config",
    }.items()
}
"""By program, or by program and first word. `NAME=` stands for every word that sets a variable."""

_GIT_SUBS: Final = _set(
    "config credential daemon shell difftool mergetool filter-branch send-email p4 svn archimport cvsimport instaweb "
    "web--browse upload-pack receive-pack remote-ext remote-fd fast-import hook maintenance clean gc"
)
"""Parts of git that run programs, change how git works, or throw work away: a rule names them or does not mean them."""

_GIT_GLOBAL: Final = frozenset({"-c", "-C", "-p", "--paginate"})
RUNNERS: Final = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("python", "-m"), ("python3", "-m")}
)
"""Words before a program that is known, and behave like nothing."""

_NONE: Final[frozenset[str]] = frozenset()
_NAMED: Final = _set("go mvn gradle find tsc dotnet")
"""Programs whose options are whole words behind one hyphen."""

_NAMES: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
_SUBS: Final[Mapping[str, str]] = {
    "git": "add commit",
    "npm": "test run",
    "pnpm": "test run",
    "yarn": "test run build lint",
    "bun": "test run",
    "cargo": "test build check clippy fmt doc bench",
    "go": "test build vet fmt",
    "ruff": "check format",
    "mvn": "test compile verify package",
    "gradle": "test build check",
    "dotnet": "test build",
    "pre-commit": "run",
}
_ALONE: Final = _set("pytest mypy tsc eslint prettier black isort flake8 tox nox jest vitest")
_THREE: Final = frozenset(
    {
        ("npm", "run"),
        ("pnpm", "run"),
        ("yarn", "run"),
        ("bun", "run"),
        ("git", "push"),
        ("git", "fetch"),
        ("git", "pull"),
    }
)
_SHOWS: Final = _set("view list status diff checks")


@lru_cache(maxsize=8192)
def program(word: str) -> str:
    """The name of a program, wherever it lies and whatever its version."""
    name = word.rpartition("/")[2].casefold()
    found = _VERSIONED.fullmatch(name)
    return found[1] if found else name


def runs_others(word: str) -> bool:
    """Whether what this program does is said by its other words."""
    name = program(word)
    return name in WRAPPERS or name in INTERPRETERS


def escapes(words: Sequence[str]) -> Iterator[int]:
    """Where in a command words stand that a rule covers only if it names them."""
    name = program(words[0])
    if tuple(words[:2]) in RUNNERS:
        yield 1
        yield from (at + 2 for at in escapes(words[2:]) if len(words) > 2)
    elif name in INTERPRETERS:
        yield from (at for at, word in enumerate(words) if at and word.startswith("-") and len(word) > 1)
    else:
        if name == "git":
            yield from _git(words)
        sub = next((word for word in words[1:] if not word.startswith("-")), "")
        known = ESCAPES.get(name, _NONE) | ESCAPES.get(f"{name} {sub}", _NONE)
        yield from (at for at, word in enumerate(words) if at and is_escape(word, known, letters=name not in _NAMED))


def is_escape(word: str, known: frozenset[str], *, letters: bool = True) -> bool:
    """Whether a word is one of these, abbreviated, with its value, or (`letters`) as one letter among others."""
    name = word.partition("=")[0]
    if not word.startswith("-"):
        return word in known or ("NAME=" in known and _SETTING.match(word) is not None)
    if word.startswith("--"):
        return len(name) > 2 and any(one.startswith(name) for one in known)
    if name in known or len(name) < 2:
        return name in known
    if not letters:
        return name[1].isupper() and name[:2] in known
    cluster = _OPTION.match(word)
    return cluster is not None and any(len(one) == 2 and one[1] in cluster[0] for one in known)


def _git(words: Sequence[str]) -> Iterator[int]:
    """What stands before git's command can change everything; some commands are programs of their own."""
    for at, word in enumerate(words[1:], 1):
        if not word.startswith("-"):
            if word in _GIT_SUBS:
                yield at
            if word == "push":
                yield from (at + more for more, ref in enumerate(words[at:]) if ref[:1] in {"+", ":"})
            return
        if is_escape(word, _GIT_GLOBAL):
            yield at


def useful_prefix(words: Sequence[str]) -> int:
    """How many of a command's first words a person would want to allow; 0 when nothing less than all of them."""
    if tuple(words[:2]) in RUNNERS:
        inner = useful_prefix(words[2:])
        return inner + 2 if inner else 0
    if words and words[0] in _ALONE:
        return 1
    if len(words) < 2:
        return 0
    name, sub, named = words[0], words[1], len(words) > 2 and _NAMES.fullmatch(words[2]) is not None
    if (name, sub) in _THREE:
        return 3 if named else 0
    if name == "gh":
        return 3 if named and sub in {"pr", "issue"} and words[2] in _SHOWS else 0
    if name in {"make", "just"}:
        return 2 if _NAMES.fullmatch(sub) else 0
    return 2 if sub in _SUBS.get(name, "").split() else 0
