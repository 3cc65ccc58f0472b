"""Tests that stand in one file with what they test: changed ones are named, and those that are added are work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.inside_sources import changed_doctests, changed_in_rust
from greenroom.abilities.checks.meddling import changed_inside

RUST = """pub fn add(a: i32) -> i32 { a + 1 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(add(1), 2);
    }

    #[tokio::test]
    async fn more() {
        assert_eq!(add(2), 3);
    }
}
"""
NEW = "    #[test]\n    fn none() {\n        assert_eq!(add(0), 1);\n    }\n"
EXAMPLES = '''"""Sums.

>>> add(0)
1
"""

def add(a):
    """One more.

    >>> add(1)
    2
    """
    return a + 1

class Sum:
    def more(self):
        """More.

        >>> add(2)
        3
        """
'''


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (RUST, ()),
        (RUST.replace("a + 1", "1 + a"), ()),
        (RUST.removesuffix("}\n") + f"\n{NEW}}}\n", ()),
        (RUST.replace("    #[test]\n", f"{NEW}\n    #[test]\n"), ()),
        (RUST.replace("    use super::*;\n", "    use super::*;\n    use std::fs;\n"), ()),
        (RUST.removesuffix("}\n") + "\n    fn zero() -> i32 { 0 }\n}\n", ()),
        (RUST.replace("add(1), 2", "add(1), 3"), ("adds",)),
        (RUST.replace("fn adds() {\n", "fn adds() {\n        return;\n"), ("adds",)),
        (RUST.replace("    #[test]\n", "    #[test]\n    #[ignore]\n"), ("adds",)),
        (RUST.replace("add(2), 3", "add(2), add(2)"), ("more",)),
        (RUST.replace("use super::*;", "use crate::fake::*;"), ("the part for tests",)),
        (RUST.replace("super::*;\n", "super::*;\n    fn add(a: i32) -> i32 { a }\n"), ("add (added)",)),
        (RUST.replace("super::*;\n", "super::*;\n    use crate::fake::{x, add};\n"), ("add (added)",)),
        (RUST.removesuffix("}\n") + "    fn add(a: i32) -> i32 { a }\n}\n", ("add (added)",)),
        ("pub fn add(a: i32) -> i32 { a }\n", ("adds", "more", "the part for tests")),
        (f"macro_rules! assert_eq {{ ($($x:tt)*) => {{{{}}}} }}\n{RUST}", ("assert_eq! (added)",)),
        (f"use crate::fake::assert_eq;\n{RUST}", ("assert_eq! (added)",)),
        (f"macro_rules! sums {{ () => {{}} }}\n{RUST}", ()),
        (f"{RUST}\npub fn more(a: i32) -> i32 {{ add(add(a)) }}\n", ()),
    ],
)
def test_tests_of_rust_beside_their_source_are_told_apart(after: str, told: tuple[str, ...]) -> None:
    assert changed_in_rust(RUST.encode(), after.encode()) == told
    found = changed_inside([Changed(path="src/lib.rs", before=RUST.encode(), after=after.encode())])
    assert [one.apart for one in found] == ([False] if told else [])


ABOVE = """//! Sums.

#[cfg(test)]
mod tests;

#[cfg(test)]
const BRACE: (char, &str, [u8; 2]) = ('}', "};", [0; 2]);

pub fn add(a: i32) -> i32 { a + 1 }
"""


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (ABOVE.replace("a + 1", "1 + a") + "\npub fn none() {}\n", ()),
        (ABOVE.replace("[0; 2]", "[0; 1]"), ("the part for tests",)),
        (ABOVE.replace("mod tests;", 'mod tests { const A: &str = r#"}"#; /* } */ }'), ("the part for tests",)),
        (ABOVE.replace("#[cfg(test)]\nmod tests;\n", ""), ("the part for tests",)),
    ],
)
def test_a_part_for_tests_ends_where_it_ends(after: str, told: tuple[str, ...]) -> None:
    assert changed_in_rust(ABOVE.encode(), after.encode()) == told


def test_a_macro_that_judges_counts_in_a_source_without_tests_too() -> None:
    made = b"macro_rules! assert { ($($x:tt)*) => {} }\nmacro_rules! own { () => {} }\nmod sums;\n"
    assert changed_in_rust(b"mod sums;\n", made) == ("assert! (added)",)
    assert changed_in_rust(made, made + b"fn a() {}\n") == ()


def test_a_source_of_rust_without_tests_has_none_to_change() -> None:
    assert changed_in_rust(b"fn a() {}", RUST.encode()) == ()
    change = Changed(path="tests/api.rs", before=RUST.encode(), after=b"")
    assert changed_inside([change]) == (), "a file of tests can be put back"


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (EXAMPLES.replace("a + 1", "1 + a"), ()),
        (EXAMPLES.replace("One more.", "Adds one."), ()),
        (EXAMPLES.replace("    2\n", "    2\n    >>> add(5)\n    6\n"), ()),
        (EXAMPLES.replace("    2\n", "    3\n"), ("add",)),
        (EXAMPLES.replace("    >>> add(1)", "    >>> add = lambda a: 2\n    >>> add(1)"), ("add",)),
        (EXAMPLES.replace(">>> add(0)\n1\n", ""), ("the module",)),
        (EXAMPLES.replace(">>> add(2)", ">>> add(2)  # doctest: +SKIP"), ("Sum.more",)),
        ("", ("the module", "add", "Sum.more")),
    ],
)
def test_examples_in_words_of_python_are_told_apart(after: str, told: tuple[str, ...]) -> None:
    assert changed_doctests(EXAMPLES.encode(), after.encode()) == told


def test_examples_count_only_where_they_are_run() -> None:
    change = Changed(path="app.py", before=EXAMPLES.encode(), after=b"")
    assert changed_inside([change]) == ()
    (one,) = changed_inside([change], ["app.py"])
    assert one.said.startswith("Tests inside of app.py were changed: the module, add, Sum.more.")


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_any_two_sources_can_be_compared(before: bytes, after: bytes) -> None:
    for compare in (changed_in_rust, changed_doctests):
        assert isinstance(compare(before, after), tuple)
        assert compare(before, before) == ()
