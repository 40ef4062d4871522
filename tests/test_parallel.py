"""Workers of several threads share one number of BLAS threads: it is 1 until the last of them is done."""

from contextlib import contextmanager
from threading import Event, Thread
from time import sleep

import pytest
from threadpoolctl import ThreadpoolController

from nano_simcse.parallel import Workers

PATIENCE = 60  # seconds: a thread that died must not hang the suite


def blas_threads():
    return {library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()}


def set_blas_threads(count):
    """In a thread of its own, because threadpoolctl lets nobody else change the number while its last setter lives."""
    thread = Thread(target=ThreadpoolController().limit, kwargs={"limits": count, "user_api": "blas"})
    thread.start()
    thread.join()


@pytest.fixture
def three_blas_threads():
    before = blas_threads()
    set_blas_threads(3)
    if blas_threads() != {3}:
        pytest.skip("this BLAS has no number of threads to set")
    yield
    set_blas_threads(min(before))


class Visit:
    """A thread that enters Workers, leaves when told to, and lives on until the end of the test."""

    def __init__(self):
        self.entered, self.may_leave, self.left, self.over = (Event() for _ in range(4))
        self.thread = Thread(target=self.run, daemon=True)
        self.thread.start()
        assert self.entered.wait(PATIENCE)

    def run(self):
        with Workers(1):
            self.entered.set()
            self.may_leave.wait(PATIENCE)
        self.left.set()
        self.over.wait(PATIENCE)

    def leave(self):
        self.may_leave.set()
        assert self.left.wait(PATIENCE)


@contextmanager
def visits(count):
    """That many threads inside Workers, the first to enter first."""
    visitors = []
    try:
        for _ in range(count):
            visitors.append(Visit())
        yield visitors
    finally:
        for visitor in visitors:
            visitor.may_leave.set()
            visitor.over.set()
            visitor.thread.join()


@pytest.mark.parametrize("order", [(0, 1), (1, 0), (0, 1, 2), (1, 2, 0), (2, 0, 1)])
def test_the_last_to_leave_gives_blas_its_threads_back(order, three_blas_threads):
    with visits(len(order)) as visitors:
        for place in order:
            assert blas_threads() == {1}
            visitors[place].leave()
        assert blas_threads() == {3}


def test_workers_inside_workers_and_workers_afterwards(three_blas_threads):
    with Workers(1):
        with Workers(2):
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {3}
    with visits(1) as (other,):  # another thread, after this one
        assert blas_threads() == {1}
        other.leave()
        assert blas_threads() == {3}


def test_an_error_inside_gives_them_back_as_well(three_blas_threads):
    with pytest.raises(ZeroDivisionError), Workers(2) as workers:
        workers.map(lambda part: 1 / part, [1, 0])
    assert blas_threads() == {3}


def test_a_part_that_fails_waits_for_the_others():
    """What runs on behind the caller's back would write into buffers that the caller believes to be free."""
    failing, done = Event(), []

    def work(part):
        if part == "fails":
            failing.set()
            raise ZeroDivisionError
        assert failing.wait(PATIENCE)
        sleep(0.1)
        done.append(part)

    with Workers(3) as workers:
        with pytest.raises(ZeroDivisionError):
            workers.map(work, ["first", "second", "fails"])
        assert sorted(done) == ["first", "second"]
