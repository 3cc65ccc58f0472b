"""Reads a command line as sh, dash and bash would, or says why it is not certain how they would.

It knows quoting, escapes, comments, lists, pipes, subshells, substitutions, redirections and here-documents. It does
not know loops, functions, arithmetic, arrays, `$'…'` or `${x…}`: it stops where it meets one, so that no command can
hide behind a reading that is nearly right. docs/decisions/0014 says why this is no library.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from greenroom.abilities.permission.shell.script import Command, Script, Word

LONGEST: Final = 32_768
DEEPEST: Final = 12
MOST: Final = 200

_BLANK: Final = re.compile(r"(?:[ \t]|\\\n)*")
_COMMENT: Final = re.compile(r"#[^\n]*")
_JOINT: Final = re.compile(r"&&|\|\||\|&|;;|[|;&\n]")
_REDIRECTION: Final = re.compile(r"&>>|&>|[0-9]*(?:<<<|<<-|<<|<>|<&|>>|>\||>&|<(?!\()|>(?!\())")
_PROCESS: Final = re.compile(r"[<>]\(")
_RUN: Final = re.compile(r"[^\s\\'\"`$*?\[{}~;&|()<>]+")
_QUOTED_RUN: Final = re.compile(r"[^\"\\`$]+")
_VARIABLE: Final = re.compile(r"\$(?:\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!_-])")
_BACKTICKS: Final = re.compile(r"`([^`\\]*)`")
_MARKER: Final = re.compile(r"[ \t]*(?:'(\w+)'|\"(\w+)\"|(\\)?([A-Za-z_]\w*))(?=[\s;&|<>]|\Z)", re.ASCII)
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
_BLANKS: Final = frozenset({"", " ", "\t", "\n"})
_ENDS: Final = frozenset(" \t\n;&|()<>")

_WORDS: Final = "! { } [[ ]] if then else elif fi for while until do done case esac in function select time coproc"
_RESERVED: Final = frozenset(_WORDS.split())
_NAMES: Final = "test [ printf read unset declare typeset local export readonly let mapfile readarray getopts wait"
_NAMING: Final = frozenset(_NAMES.split())
"""Words of the shell itself that take names of variables."""


class _Unsure(Exception):
    """Nobody can be sure what comes now."""


def read(text: str) -> Script:
    """Take a command line apart."""
    reader = _Reader(text, level=0)
    try:
        _check(text)
        reader.sequence(closing="", fed=False)
        unsure = "" if reader.commands else "it has no command"
    except _Unsure as why:
        unsure = str(why)
    return Script(
        commands=tuple(reader.commands),
        unsure=unsure,
        joints=tuple(reader.joints),
        nested=reader.nested or bool(unsure),
    )


def _check(text: str) -> None:
    """What no person typed, or nobody would read to its end, is not looked at further."""
    if len(text) > LONGEST:
        raise _Unsure(f"it is longer than {LONGEST:,} characters")
    found = _CONTROL.search(text)
    if found:
        raise _Unsure(f"it has the control character {found[0]!r}")
    if not text.isascii():
        for sign in text:
            if ord(sign) > 0x7F and unicodedata.category(sign) in _UNSEEN:
                raise _Unsure(f"it has the invisible character U+{ord(sign):04X}")


class _Reader:
    """Goes through a text once. What it has found so far is in `commands`, also when it has to stop."""

    def __init__(self, text: str, level: int) -> None:
        self._text = text
        self._at = 0
        self._level = level
        self._markers: list[tuple[str, bool, bool]] = []
        self.commands: list[Command] = []
        self.joints: list[str] = []
        self.nested = False

    # ------------------------------------------------------------------------------------------------- commands

    def sequence(self, closing: str, *, fed: bool) -> None:
        """Commands and the signs between them, up to the end or the closing bracket."""
        wanted, piped = False, fed
        while True:
            self._skip(newlines=True)
            if self._over(closing):
                if wanted:
                    raise _Unsure("a command is missing at its end")
                return
            self._one(piped)
            joint = self._joint(closing)
            wanted = joint in {"&&", "||", "|", "|&"}
            piped = fed or joint in {"|", "|&"}

    def _over(self, closing: str) -> bool:
        if self._at >= len(self._text):
            if closing:
                raise _Unsure("a bracket is not closed")
            if self._markers:
                raise _Unsure("a here-document has no end")
            return True
        if self._text[self._at] == ")":
            if closing != ")":
                raise _Unsure("a bracket is closed that was not opened")
            self._at += 1
            return True
        return False

    def _one(self, piped: bool) -> None:
        """A command, or several in brackets."""
        if len(self.commands) >= MOST:
            raise _Unsure(f"it has more than {MOST} commands")
        if self._text.startswith("((", self._at):
            raise _Unsure("it computes in (( … ))")
        if self._text[self._at] == "(":
            self._inner(fed=piped)
        else:
            self.commands.append(self._command(piped))

    def _inner(self, *, fed: bool) -> None:
        """What is in brackets, from the one that opens; it is read like any other commands."""
        if self._level >= DEEPEST:
            raise _Unsure(f"its brackets are more than {DEEPEST} deep")
        self.nested = True
        self._level += 1
        self._at += 1
        self.sequence(closing=")", fed=fed)
        self._level -= 1

    def _joint(self, closing: str) -> str:
        """The sign after a command."""
        self._skip(newlines=False)
        found = _JOINT.match(self._text, self._at)
        if found is None:
            rest = self._text[self._at : self._at + 1]
            if rest and rest != closing:
                raise _Unsure(f"{rest!r} stands where a command should end")
            return ""
        self._at = found.end()
        if found[0] == ";;":
            raise _Unsure("it has a `;;` outside of a case")
        if found[0] == "\n":
            self._documents()
        if self._level == 0:
            self.joints.append(found[0])
        return found[0]

    def _skip(self, *, newlines: bool) -> None:
        """Go past blanks and comments, and past empty lines where they mean nothing."""
        while True:
            self._at = self._glide(_BLANK)
            comment = _COMMENT.match(self._text, self._at)
            if comment:
                self._at = comment.end()
            if not newlines or not self._text.startswith("\n", self._at):
                return
            self._at += 1
            self._documents()

    def _glide(self, blanks: re.Pattern[str]) -> int:
        found = blanks.match(self._text, self._at)
        if found is None:
            return self._at
        self._refuse_break(found[0])
        # The shell joins the lines before it looks at signs: `&`, joined with the next line's `&`, is another sign.
        if found[0].startswith("\\") and self._text[self._at - 1 : self._at] not in _BLANKS:
            raise _Unsure("a word or a sign in it is broken over two lines")
        return found.end()

    def _refuse_break(self, piece: str) -> None:
        """Where a here-document begins is clear only if the line that announces it is one line."""
        if self._markers and "\n" in piece:
            raise _Unsure("a here-document begins on a broken line")

    def _command(self, piped: bool) -> Command:
        words: list[Word] = []
        reads: list[str] = []
        writes: list[str] = []
        fed = piped
        while True:
            self._at = self._glide(_BLANK)
            redirection = _REDIRECTION.match(self._text, self._at)
            if redirection:
                self._at = redirection.end()
                fed = self._redirect(redirection[0].lstrip("0123456789"), reads, writes) or fed
            elif _PROCESS.match(self._text, self._at) or not self._ends():
                words.append(self._word())
            else:
                break
        return _made(words, reads, writes, fed)

    def _ends(self) -> bool:
        if self._at >= len(self._text) or self._text[self._at] == "#":
            return True
        if self._text[self._at] == "(":
            raise _Unsure("it has a function, an array or a pattern in brackets")
        return self._text[self._at] in _ENDS

    # ------------------------------------------------------------------------------------------- redirections

    def _redirect(self, sign: str, reads: list[str], writes: list[str]) -> bool:
        """Note which file is opened; whether this is the command's input."""
        if sign in {"<<", "<<-"}:
            self._announce(dashed=sign == "<<-")
            return True
        self._at = self._glide(_BLANK)
        word = self._word()
        if sign == "<<<":
            return True
        if not word.plain or not word.text:
            raise _Unsure(f"it opens a file whose name is not known: {word.text!r}")
        if sign in {">&", "<&"} and re.fullmatch(r"[0-9]+-?|-", word.text):
            return sign == "<&"
        if sign == "<&":
            raise _Unsure(f"it opens {word.text!r} in an unusual way")
        if sign in {"<", "<>"}:
            reads.append(word.text)
        if sign != "<":
            writes.append(word.text)
        return sign in {"<", "<>"}

    def _announce(self, *, dashed: bool) -> None:
        """A here-document follows after this line."""
        found = _MARKER.match(self._text, self._at)
        if found is None or self._level:
            raise _Unsure("it has a here-document of an unusual form")
        self._at = found.end()
        self._markers.append((found[1] or found[2] or found[4], found[4] is None or found[3] is not None, dashed))

    def _documents(self) -> None:
        """Go past the here-documents that were announced. What the shell would expand in one is not certain."""
        for marker, quoted, dashed in self._markers:
            tabs = r"\t*" if dashed else ""
            end = re.compile(rf"^{tabs}{marker}(?:\n|\Z)", re.MULTILINE).search(self._text, self._at)
            if end is None:
                raise _Unsure("a here-document has no end")
            if not quoted and re.search(r"[$`\\]", self._text[self._at : end.start()]):
                raise _Unsure("a here-document in it is filled in by the shell")
            self._at = end.end()
        self._markers = []

    # -------------------------------------------------------------------------------------------------- words

    def _word(self) -> Word:
        begin = self._at
        texts: list[str] = []
        plain, glob = True, False
        while self._at < len(self._text):
            run = _RUN.match(self._text, self._at)
            if run:
                texts.append(run[0])
                self._at = run.end()
                continue
            sign = self._text[self._at]
            if sign in _ENDS and not _PROCESS.match(self._text, self._at):
                break
            piece = self._piece(sign)
            plain, glob = plain and piece is not None, glob or sign in "*?["
            texts.append(piece or "")
        if self._at == begin:
            raise _Unsure("a word is missing")
        written = self._text[begin : self._at]
        if plain or written == "{}":
            return Word(text="".join(texts) if plain else written)
        only_globs = glob and not re.search(r"[\\'\"`$~{}()]", written)
        return Word(text=written, plain=False, glob=only_globs)

    def _piece(self, sign: str) -> str | None:
        """The next piece of a word that is no run of usual characters; None when something takes its place."""
        match sign:
            case "\\":
                return self._escaped()
            case "'":
                return self._single()
            case '"':
                return self._double()
            case "`":
                return self._backticks(quoted=False)
            case "$":
                return self._dollar(quoted=False)
            case "<" | ">":
                self._at += 1
                self._inner(fed=False)
                return None
            case _:
                self._at += 1
                return sign if sign == "~" and self._is_no_home() else None

    def _is_no_home(self) -> bool:
        """Whether the tilde that was just read is only a tilde."""
        before = self._text[self._at - 2] if self._at > 1 else " "
        return before not in _ENDS and before not in "=:"

    def _escaped(self) -> str:
        piece = self._text[self._at + 1 : self._at + 2]
        if not piece:
            raise _Unsure("it ends with a backslash")
        if piece == "\n":
            raise _Unsure("a word or a sign in it is broken over two lines")
        self._at += 2
        return piece

    def _single(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise _Unsure("a quotation has no end")
        piece = self._text[self._at + 1 : end]
        self._refuse_break(piece)
        self._at = end + 1
        return piece

    def _double(self) -> str | None:
        texts: list[str] = []
        plain = True
        self._at += 1
        while self._at < len(self._text):
            run = _QUOTED_RUN.match(self._text, self._at)
            if run:
                self._refuse_break(run[0])
                texts.append(run[0])
                self._at = run.end()
                continue
            sign = self._text[self._at]
            if sign == '"':
                self._at += 1
                return "".join(texts) if plain else None
            piece = self._quoted_piece(sign)
            plain = plain and piece is not None
            texts.append(piece or "")
        raise _Unsure("a quotation has no end")

    def _quoted_piece(self, sign: str) -> str | None:
        if sign == "`":
            return self._backticks(quoted=True)
        if sign == "$":
            return self._dollar(quoted=True)
        piece = self._escaped()
        return piece if piece in {"$", "`", '"', "\\"} else f"\\{piece}"

    def _dollar(self, *, quoted: bool) -> str | None:
        after = self._text[self._at + 1 : self._at + 3]
        if after == "((":
            raise _Unsure("it computes in $(( … ))")
        if after.startswith("("):
            self._at += 1
            self._inner(fed=False)
            return None
        found = _VARIABLE.match(self._text, self._at)
        if found:
            self._at = found.end()
            return None
        if after[:1] in {"{", "["} or (not quoted and after[:1] in {"'", '"'}):
            raise _Unsure(f"it has an expansion of an unusual form: ${after[:1]}…")
        self._at += 1
        return "$"

    def _backticks(self, *, quoted: bool) -> str | None:
        found = _BACKTICKS.match(self._text, self._at)
        if found is None or (quoted and '"' in found[1]) or self._level >= DEEPEST or len(self.commands) >= MOST:
            raise _Unsure("it has backticks of an unusual form")
        self._refuse_break(found[0])
        self.nested = True
        inner = _Reader(found[1], level=self._level + 1)
        try:
            inner.sequence(closing="", fed=False)
        finally:
            self.commands.extend(inner.commands)
        self._at = found.end()
        return None


def _made(words: list[Word], reads: list[str], writes: list[str], fed: bool) -> Command:
    """The command, if it is one that stands for itself."""
    if words and words[0].text in _RESERVED:
        raise _Unsure(f"it has a `{words[0].text}`")
    assigned = 0
    while assigned < len(words) and _ASSIGNMENT.match(words[assigned].text):
        assigned += 1
    if assigned == len(words):
        raise _Unsure("it sets a variable for what follows" if assigned else "it only opens files")
    _once_only(words[assigned:])
    return Command(words=tuple(words), assigned=assigned, reads=tuple(reads), writes=tuple(writes), fed=fed)


def _once_only(words: Sequence[Word]) -> None:
    """What a shell takes for the name of a variable it reads a second time, and runs what stands in its brackets."""
    if words[0].text in _NAMING and any("[" in one.text and ("$" in one.text or "`" in one.text) for one in words[1:]):
        raise _Unsure(f"`{words[0].text}` may run what stands in brackets")
