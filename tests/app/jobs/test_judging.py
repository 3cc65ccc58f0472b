"""Which files are put back before the work is judged anew."""

from greenroom.abilities.checks.meddling import FEW, Meddled
from greenroom.app.jobs.judging import put_back


def used(path: str, *, doubtful: bool = False) -> Meddled:
    return Meddled(kind="command", path=path, said=f"{path} was changed.", doubtful=doubtful)


def test_all_judges_are_put_back_at_once_and_the_work_is_left() -> None:
    changes = ["app.py", "ci/t.sh", "tests/test_new.py"]
    assert put_back(changes, ["tests/test_new.py"], [used("ci/t.sh")]) == [["ci/t.sh", "tests/test_new.py"]]


def test_what_may_be_the_work_itself_is_put_back_and_left_and_put_back_in_parts() -> None:
    changes = ["app.py", "ci/t.sh", "run_it"]
    meddled = [used("ci/t.sh"), used("app.py", doubtful=True), used("run_it", doubtful=True)]
    assert put_back(changes, (), meddled) == [
        ["ci/t.sh", "app.py", "run_it"],
        ["ci/t.sh"],
        ["ci/t.sh", "app.py"],
        ["ci/t.sh", "run_it"],
    ]


def test_one_that_may_be_the_work_is_put_back_once() -> None:
    assert put_back(["app.py", "b.py"], (), [used("app.py", doubtful=True)]) == [["app.py"]]
    assert put_back(["app.py"], (), []) == []


def test_each_part_of_what_may_be_the_work_is_put_back() -> None:
    meddled = [used(one, doubtful=True) for one in "abc"]
    assert put_back(["a", "b", "c", "app.py"], (), meddled) == [
        ["a", "b", "c"],
        ["a"],
        ["b"],
        ["c"],
        ["a", "b"],
        ["a", "c"],
        ["b", "c"],
    ]


def test_of_more_than_a_few_nothing_is_put_back_so_that_nothing_is_cleared() -> None:
    names = [f"p{number}" for number in range(FEW + 1)]
    meddled = [used(one, doubtful=True) for one in names]
    assert put_back([*names, "ci/t.sh"], (), [*meddled, used("ci/t.sh")]) == []
    assert put_back(names, names[:1], meddled)[0] == names, "what is known to hold tests is a judge"


def test_what_stands_in_one_file_with_the_work_is_not_put_back() -> None:
    inside = Meddled(kind="test", path="src/lib.rs", said="Tests inside of src/lib.rs were changed.", apart=False)
    assert put_back(["src/lib.rs", "ci/t.sh"], (), [inside, used("ci/t.sh")]) == [["ci/t.sh"]]
