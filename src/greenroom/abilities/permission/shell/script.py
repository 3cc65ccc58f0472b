"""What a command line consists of. No tree: what counts is which programs run, with which words, on which files."""

from __future__ import annotations

from greenroom.core.base.records import record


@record
class Word:
    """One word of a command. It is `plain` when the program gets exactly this text, and nothing is put in its place;
    `glob` when names of files are. What is not plain has the text that was written."""

    text: str
    plain: bool = True
    glob: bool = False


@record
class Command:
    """One program with its words; the first `assigned` words set variables for it.

    `reads` and `writes` are the files that the shell opens for it. It is `fed` when its input comes from a pipe or from
    the command line itself.
    """

    words: tuple[Word, ...]
    assigned: int = 0
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    fed: bool = False

    @property
    def plain(self) -> tuple[str, ...]:
        """Its words, up to the first one that nobody can know."""
        texts: list[str] = []
        for word in self.words:
            if not word.plain:
                break
            texts.append(word.text)
        return tuple(texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """Its words as they are written."""
        return tuple(word.text for word in self.words)


@record
class Script:
    """A whole command line: every command in it, inner ones too.

    `unsure` says why it could not be read to its end with certainty; then there may be commands that are not listed.
    `joints` are the signs between the commands of a line without brackets; a line with some has `nested`.
    """

    commands: tuple[Command, ...]
    unsure: str = ""
    joints: tuple[str, ...] = ()
    nested: bool = False
