"""`python -m tests.projects [--by-hand] [NAME …]`: print the table, and why each run is not verified; assert nothing.

With `--by-hand` each change is made without Greenroom: the right one must pass the project's tests, the other not.
"""

import argparse
import tempfile
from pathlib import Path

from tests.projects.row import PROJECTS, draw, explain, play, try_by_hand


def main() -> None:
    """Play the projects one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.projects", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROJECTS))
    parser.add_argument("--by-hand", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="print what the person saw, too")
    given = parser.parse_args()
    rows: list[tuple[str, ...]] = []
    for name in given.names or PROJECTS:
        with tempfile.TemporaryDirectory(prefix="greenroom-projects-") as made:
            if given.by_hand:
                print(
                    f"{name}: {try_by_hand(PROJECTS[name], Path(made)) or 'right passes, breaking fails'}", flush=True
                )
                continue
            row = play(PROJECTS[name], Path(made))
        rows.append(row.cells)
        print(explain(row, verbose=given.verbose), flush=True)
    if rows:
        print(draw(rows))


main()
