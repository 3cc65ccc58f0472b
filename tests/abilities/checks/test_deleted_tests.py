"""Tests that are not there any more, by their text."""

from __future__ import annotations

import pytest

from greenroom.abilities.checks.changed import Changed
from greenroom.abilities.checks.deleted_tests import deleted_tests

HEADS = {
    "a.test.js": "test('adds', () => {\n  ok(add(1))\n})\n",
    "a_spec.rb": '  it "adds" do\n    expect(add(1)).to eq 2\n  end\n',
    "a_test.go": "func TestAdd(t *testing.T) {\n}\n",
    "src/test/FooTest.java": "  @Test\n  void adds() {}\n",
    "tests/FooTest.php": "    public function testAdds(): void\n    {\n    }\n",
    "tests/FooTests.cs": "    [Fact]\n    public void Adds() {}\n",
    "tests/a_test.cc": "TEST(Sums, Adds) {\n}\n",
    "tests/api.rs": "#[test]\nfn adds() {}\n",
    "test_a.py": "class TestA:\n    def test_add(self):\n        pass\n",
}


@pytest.mark.parametrize("path", HEADS)
def test_a_test_that_is_taken_out_of_its_file_is_deleted(path: str) -> None:
    text = HEADS[path].encode()
    (said, *_) = deleted_tests([Changed(path=path, before=b"x\n" + text, after=b"x\n")])
    assert said.startswith(f"{path}: there is no ")
    assert said.endswith("any more, and no check counts its tests.")
    assert deleted_tests([Changed(path=path, before=text, after=text + b"// more\n")]) == ()
    assert deleted_tests([Changed(path=path, before=text + text, after=text)]), "two were there, and one is"
    moved = Changed(path=f"tests/unit/{path}", after=text)
    assert deleted_tests([Changed(path=path, before=text), moved]) == ()


def test_one_that_is_skipped_is_not_the_one_that_was_there() -> None:
    before = HEADS["a.test.js"].encode()
    assert deleted_tests([Changed(path="a.test.js", before=before, after=before.replace(b"test(", b"test.skip("))])


def test_a_file_in_which_no_test_is_seen_counts_whole_unless_it_was_moved() -> None:
    gone = Changed(path="tests/a.sh", before=b"grep -q x y\n")
    assert deleted_tests([gone]) == ("tests/a.sh was deleted, and no check counts its tests.",)
    assert deleted_tests([gone, Changed(path="tests/b.sh", after=b"grep -q x y\n")]) == ()
    assert deleted_tests([Changed(path="src/a.sh", before=b"x")]) == ()
    assert deleted_tests([Changed(path="src/a.sh", before=b"x")], ["src/a.sh"])
