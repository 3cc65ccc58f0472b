import pytest

from greenroom.cli.errors import explain
from greenroom.cli.exit_codes import Exit, exit_for_error, exit_for_signal, exit_for_statuses
from greenroom.core.base.errors import Bug, ModelFault, RefusedError, Rejection, StaleOwner, StoreFault, StoreFull


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["finished"], 0),
        ([], 0),
        (["failed"], 1),
        (["cancelled"], 1),
        (["idle"], 1),
        (["limit"], 5),
        (["waiting"], 6),
        (["paused"], 6),
        (["finished", "waiting"], 6),
        (["waiting", "limit"], 5),
        (["limit", "failed", "finished"], 1),
    ],
)
def test_a_run_ends_with_the_code_of_its_worst_task(words: list[str], code: int) -> None:
    assert exit_for_statuses(words) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RefusedError(Rejection(code="x", why="No.")), 2),
        (StoreFault("damaged"), 3),
        (StoreFull("full"), 3),
        (StaleOwner("held"), 3),
        (TimeoutError(), 3),
        (ModelFault("no answer"), 4),
        (Bug("ours"), 1),
        (ValueError("ours too"), 1),
    ],
)
def test_an_error_has_a_code(error: Exception, code: int) -> None:
    assert exit_for_error(error) == code


def test_a_signal_has_the_code_that_shells_know() -> None:
    assert (exit_for_signal(2), exit_for_signal(15), exit_for_signal(1)) == (
        Exit.INTERRUPTED,
        Exit.TERMINATED,
        Exit.HUNG_UP,
    )
    assert (Exit.INTERRUPTED, Exit.TERMINATED) == (130, 143)


def test_a_mistake_of_the_user_is_explained_in_its_own_words() -> None:
    refused = RefusedError(Rejection(code="x", why="There is no such team.", hint="Try another."))
    assert explain(refused) == "There is no such team. Try another."


def test_a_mistake_of_ours_is_called_a_bug() -> None:
    assert "This is a bug in Greenroom" in explain(KeyError("step"))
    assert "This is a bug in Greenroom" in explain(Bug("a rule failed"))


def test_an_owner_that_does_not_answer_is_said() -> None:
    assert "did not answer in time" in explain(TimeoutError())
