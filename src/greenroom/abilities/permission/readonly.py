"""Commands that only read, with exactly the words under which they do: whatever is not listed here is not known to.

They are taken to stay on the machine (`leaving`). Nothing is silent because of that: walls are what makes it so.

Not here on purpose: awk, less, env, printenv, xargs, `sed` but for printing lines, `grep -r` (it reads hidden files,
`rg` does not), tests and builds (they run code).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from greenroom.abilities.permission.shell.script import Word
from greenroom.core.base.records import record

Operands: TypeAlias = Literal["paths", "words", "pattern", "one path", "revisions", "none"]


class NotReadOnly(Exception):
    """The word because of which a command is more than a look."""


@record
class Reader:
    """A program that reads. `flags` are letters, `valued` letters with a value, `long` are words with or without one
    behind `=`, `long_valued` words whose value is the next word. With `numbers` `-5` is an option. A program that shows
    no contents (`names_only`) may be given patterns of names."""

    flags: str = ""
    valued: str = ""
    long: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    operands: Operands = "paths"
    numbers: bool = False
    names_only: bool = False


def _reader(flags: str = "", valued: str = "", long: str = "", long_valued: str = "", **rest: object) -> Reader:
    named = {name: frozenset(words.split()) for name, words in (("long", long), ("long_valued", long_valued))}
    return Reader(
        flags=flags,
        valued=valued,
        long=named["long"],
        long_valued=named["long_valued"],
        operands=_OPERANDS[str(rest.get("operands", "paths"))],
        numbers=bool(rest.get("numbers")),
        names_only=bool(rest.get("names_only")),
    )


_OPERANDS: Final[Mapping[str, Operands]] = {
    "paths": "paths",
    "words": "words",
    "pattern": "pattern",
    "one path": "one path",
    "revisions": "revisions",
    "none": "none",
}
_GREP: Final = _reader(
    "EFGPivwxcLlqsnoHhaUbZTz",
    "emABC",
    "--count --ignore-case --invert-match --word-regexp --line-regexp --line-number --only-matching --quiet --color "
    "--files-with-matches --files-without-match --fixed-strings --extended-regexp --no-filename --with-filename "
    "--max-count --context --after-context --before-context --no-messages --text",
    "--regexp",
    operands="pattern",
)
_SUM: Final = _reader("bt", "", "--binary --text --tag")
READERS: Final[Mapping[str, Reader]] = {
    "ls": _reader(
        "1aAbBcCdFgGhHiklLmnNopqQrRsStuUvxXZ",
        "ITw",
        "--all --almost-all --human-readable --color --reverse --recursive "
        "--size --sort --time --time-style --group-directories-first --directory --classify --inode",
        names_only=True,
    ),
    "cat": _reader("AbeEnstTuv", "", "--number --number-nonblank --show-all --show-ends --show-tabs --squeeze-blank"),
    "head": _reader("qvz", "nc", "--lines --bytes --quiet --verbose", numbers=True),
    "tail": _reader("qvz", "nc", "--lines --bytes --quiet --verbose", numbers=True),
    "wc": _reader("clmLw", "", "--lines --words --bytes --chars --max-line-length", names_only=True),
    "nl": _reader("p", "bdfhilnsvw"),
    "tac": _reader("br", "s"),
    "rev": _reader(),
    "od": _reader("abcdfhiloxsvw", "AjNt"),
    "cut": _reader("nsz", "bcdf", "--bytes --characters --delimiter --fields --complement --only-delimited"),
    "uniq": _reader("cdDiuz", "fsw", "--count --repeated --unique --ignore-case", operands="one path"),
    "sort": _reader(
        "bdfgiMhnRrVcCmsuz", "kt", "--key --numeric-sort --reverse --unique --version-sort --field-separator"
    ),
    "comm": _reader("123z"),
    "cmp": _reader("bls", "n"),
    "diff": _reader("abBcdeEinNpqstTuwyZ", "CUW", "--unified --brief --color --ignore-all-space --side-by-side"),
    "stat": _reader("LfFtx", "c", "--format --printf --terse --dereference", names_only=True),
    "file": _reader("bhikLNpr0", "", "--brief --mime --mime-type --mime-encoding", names_only=True),
    "du": _reader(
        "abchHkLmPsSx0", "dBt", "--summarize --human-readable --max-depth --apparent-size --all", names_only=True
    ),
    "tree": _reader("adfispughDFrtUCnQ", "LIP", "--dirsfirst --noreport --gitignore --prune", names_only=True),
    "md5sum": _SUM,
    "sha1sum": _SUM,
    "sha256sum": _SUM,
    "sha512sum": _SUM,
    "realpath": _reader("eLmPqsz", "", "--relative-to --relative-base", names_only=True),
    "readlink": _reader("efmnqsvz", "", "", names_only=True),
    "basename": _reader("az", "s", operands="words"),
    "dirname": _reader("z", operands="words"),
    "echo": _reader("neE", operands="words"),
    "printf": _reader(operands="words"),
    "true": _reader(operands="words"),
    "false": _reader(operands="words"),
    "pwd": _reader("LP", operands="none"),
    "whoami": _reader(operands="none"),
    "uname": _reader("asnrvmpio", "", "--all --machine", operands="none"),
    "nproc": _reader("", "", "--all", operands="none"),
    "which": _reader("as", operands="words"),
    "tr": _reader("cCdst", "", "--delete --squeeze-repeats --complement", operands="words"),
    "seq": _reader("w", "fs", operands="words", numbers=True),
    "grep": _GREP,
    "egrep": _GREP,
    "fgrep": _GREP,
    "rg": _reader(
        "FSUPbcilnNopqsvwxH0IV",
        "eABCtTmMdjr",
        "--files --count --count-matches --fixed-strings --ignore-case --smart-case --line-number --no-line-number "
        "--word-regexp --only-matching --files-with-matches --files-without-match --heading --no-heading --color "
        "--stats --multiline --max-count --context --after-context --before-context --type --type-not --sort "
        "--max-depth --invert-match --json --vimgrep --trim --column --type-list --version --case-sensitive",
        "--regexp --type --type-not --max-count --context --max-depth --sort --color",
        operands="pattern",
    ),
}
_DIFFS: Final = (
    "--stat --numstat --shortstat --dirstat --summary --name-only --name-status --patch --no-patch --raw "
    "--unified --color --no-color --word-diff --word-diff-regex --color-words --color-moved "
    "--ignore-all-space --ignore-space-change --ignore-blank-lines --minimal --patience --histogram "
    "--diff-filter --find-renames --find-copies --no-renames --check --full-index --binary --abbrev "
    "--relative --exit-code --quiet --function-context --submodule --no-ext-diff --no-textconv "
    "--pickaxe-regex --pickaxe-all --inter-hunk-context --compact-summary --no-prefix"
)
_LOGS: Final = (
    "--oneline --graph --decorate --no-decorate --all --branches --tags --remotes --max-count --skip --since --after "
    "--until --before --author --committer --grep --invert-grep --all-match --merges --no-merges --first-parent "
    "--reverse --follow --format --pretty --date --abbrev-commit --no-abbrev-commit --topo-order --date-order "
    "--left-right --cherry-pick --cherry --ancestry-path --full-history --simplify-merges --notes --no-notes --source "
    "--full-diff --no-walk --regexp-ignore-case --fixed-strings --extended-regexp --no-color --boundary --parents "
    "--children"
)
GIT: Final[Mapping[str, Reader]] = {
    "status": _reader(
        "sbvz",
        "",
        "--short --branch --porcelain --long --verbose --ignored --untracked-files --ahead-behind --column "
        "--no-column --renames --no-renames --show-stash",
        operands="revisions",
    ),
    "diff": _reader("abBCMpRswWzuU0123456789", "GS", f"{_DIFFS} --cached --staged --merge-base", operands="revisions"),
    "log": _reader("abcigmpMRswWzuEF", "nGSLU", f"{_DIFFS} {_LOGS}", operands="revisions", numbers=True),
    "show": _reader("abcmpMRswWzu", "nGSU", f"{_DIFFS} {_LOGS}", operands="revisions", numbers=True),
    "shortlog": _reader("nsec", "", _LOGS, operands="revisions"),
    "blame": _reader(
        "bcefklMnpstw", "L", "--porcelain --line-porcelain --show-email --date --root", operands="revisions"
    ),
    "branch": _reader("arv", "", "--all --remotes --list --show-current --verbose --no-color --color", operands="none"),
    "rev-parse": _reader(
        "q",
        "",
        "--abbrev-ref --short --show-toplevel --verify --is-inside-work-tree --git-dir --show-prefix --quiet "
        "--absolute-git-dir --symbolic-full-name --show-cdup",
        operands="revisions",
    ),
    "ls-files": _reader(
        "cdmoistuvz",
        "x",
        "--cached --others --modified --deleted --exclude-standard --stage --unmerged --full-name "
        "--ignored --error-unmatch",
        operands="revisions",
    ),
    "ls-tree": _reader("drtlz", "", "--name-only --name-status --full-name --full-tree --long", operands="revisions"),
    "describe": _reader(
        "", "", "--tags --all --always --dirty --long --abbrev --match --exact-match", operands="revisions"
    ),
    "merge-base": _reader("a", "", "--all --is-ancestor --fork-point --octopus", operands="revisions"),
    "rev-list": _reader("n", "", f"{_LOGS} --count", operands="revisions", numbers=True),
}
"""Parts of git that read. Patches are shown by programs only if the person's own settings name some."""

_GIT_BEFORE: Final = frozenset({"--no-pager", "--no-optional-locks"})
_SED_PRINTS: Final = re.compile(r"(?:[0-9]+|\$)(?:,(?:\+?[0-9]+|\$))?p")
_DATE: Final = re.compile(r"\+[%A-Za-z0-9:. _/-]*")
_FIND_ALONE: Final = "-not ! -o -or -a -and -print -print0 -empty -prune -true -false -depth -mount -xdev ( )"
_FIND_VALUED: Final = (
    "-name -iname -path -ipath -type -maxdepth -mindepth -size -mtime -mmin -ctime -atime -regex -iregex -perm"
)
_FIND: Final = {**dict.fromkeys(_FIND_ALONE.split(), 0), **dict.fromkeys(_FIND_VALUED.split(), 1)}


def read_files(words: Sequence[Word]) -> tuple[str, ...]:
    """The files that a command reads and shows; `NotReadOnly` if it may do more than that, or on what nobody knows."""
    name = words[0].text
    match name:
        case "git":
            return _git(words)
        case "sed" | "date" | "find":
            return _OWN[name](_plain(words[1:]))
        case _ if name in READERS:
            return _operands(READERS[name], words[1:])
        case _:
            raise NotReadOnly(name)


def _plain(words: Sequence[Word]) -> list[str]:
    for word in words:
        if not word.plain:
            raise NotReadOnly(word.text)
    return [word.text for word in words]


def _git(words: Sequence[Word]) -> tuple[str, ...]:
    rest = list(words[1:])
    while rest and rest[0].text in _GIT_BEFORE:
        rest.pop(0)
    if not rest or rest[0].text not in GIT:
        raise NotReadOnly(rest[0].text if rest else "git")
    return _operands(GIT[rest[0].text], rest[1:])


def _operands(reader: Reader, words: Sequence[Word]) -> tuple[str, ...]:
    """What is left when all options are known ones."""
    found: list[str] = []
    patterned, only, skip = False, False, False
    for word in words:
        text = word.text
        if not word.plain and not (reader.names_only and word.glob and text[0] not in "-*?[~"):
            raise NotReadOnly(text)
        if skip:
            skip = False
        elif only or text == "-" or not text.startswith("-") or (reader.operands == "words" and not _is_option(text)):
            found.append(text)
        elif text == "--":
            only = True
        else:
            skip = _option(reader, text)
            patterned = patterned or _gives_pattern(text)
    return _files(reader, found, patterned=patterned)


def _gives_pattern(text: str) -> bool:
    """Whether the pattern may be said by this option: then every other word is a file."""
    return text.startswith(("--regexp", "--files", "--type-list")) or (text[:2] != "--" and "e" in text)


def _is_option(text: str) -> bool:
    return re.fullmatch(r"--?[A-Za-z][A-Za-z-]*(?:=.*)?", text, re.DOTALL) is not None


def _option(reader: Reader, text: str) -> bool:
    """Whether the value of this option is the next word; `NotReadOnly` for one that is not known."""
    if text.startswith("--"):
        name, value, _ = text.partition("=")
        if name not in reader.long and name not in reader.long_valued:
            raise NotReadOnly(text)
        return not value and name in reader.long_valued
    if reader.numbers and re.fullmatch(r"-[0-9]+", text):
        return False
    for at, letter in enumerate(text[1:], 1):
        if letter in reader.valued:
            return at == len(text) - 1
        if letter not in reader.flags:
            raise NotReadOnly(text)
    return False


def _files(reader: Reader, found: Sequence[str], *, patterned: bool) -> tuple[str, ...]:
    match reader.operands:
        case "words":
            return ()
        case "none":
            if found:
                raise NotReadOnly(found[0])
            return ()
        case "one path":
            if len(found) > 1:
                raise NotReadOnly(found[1])
        case "pattern":
            return tuple(found if patterned else found[1:])
        case "revisions":
            return tuple(part for one in found for part in (one, one.rpartition(":")[2]))
        case "paths":
            pass
    return tuple(one for one in found if one != "-")


# --------------------------------------------------------------------------------------------------- those of their own


def _sed(words: Sequence[str]) -> tuple[str, ...]:
    if words[:1] != ["-n"] or len(words) < 2 or _SED_PRINTS.fullmatch(words[1]) is None:
        raise NotReadOnly("sed")
    return _operands(Reader(), [Word(text=text) for text in words[2:]])


def _date(words: Sequence[str]) -> tuple[str, ...]:
    for word in words:
        if word not in {"-u", "-I", "-R", "--utc"} and _DATE.fullmatch(word) is None:
            raise NotReadOnly(word)
    return ()


def _find(words: Sequence[str]) -> tuple[str, ...]:
    roots = 0
    while roots < len(words) and not words[roots].startswith(("-", "(", "!")):
        roots += 1
    at = roots
    while at < len(words):
        if words[at] not in _FIND:
            raise NotReadOnly(words[at])
        at += 1 + _FIND[words[at]]
    return tuple(words[:roots])


_OWN: Final[Mapping[str, Callable[[Sequence[str]], tuple[str, ...]]]] = {"sed": _sed, "date": _date, "find": _find}
