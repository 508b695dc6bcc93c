"""The breaker of the OPA engine: when it opens, what it lets through, and how it closes."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy.opa_server.breaker import FAILURES_MAX, PAUSE_NS, Breaker


class Time:
    """A counter that a test sets."""

    def __init__(self) -> None:
        self.ns = 0

    def __call__(self) -> int:
        """Return the nanoseconds."""
        return self.ns


@pytest.fixture
def time() -> Time:
    """The clock of the breaker."""
    return Time()


@pytest.fixture
def breaker(time: Time) -> Breaker:
    """A closed breaker."""
    return Breaker(time)


def fail(breaker: Breaker, times: int) -> None:
    """Let so many calls fail."""
    for _ in range(times):
        breaker.failed(probe=breaker.enter())


def refuses(breaker: Breaker) -> bool:
    """Say whether the breaker refuses; a call that it lets in is abandoned."""
    try:
        probe = breaker.enter()
    except EngineFailureError as failure:
        return failure.reason == "engine_breaker_open"
    breaker.abandoned(probe=probe)
    return False


def test_it_opens_after_failures_running(breaker: Breaker) -> None:
    """One failure fewer than the bound changes nothing; the next refuses."""
    fail(breaker, FAILURES_MAX - 1)
    before = refuses(breaker)
    fail(breaker, 1)

    assert (before, refuses(breaker)) == (False, True)


def test_a_success_in_between_begins_the_count_anew(breaker: Breaker) -> None:
    """Failures count only where they follow each other."""
    fail(breaker, FAILURES_MAX - 1)
    breaker.succeeded(probe=breaker.enter())
    fail(breaker, FAILURES_MAX - 1)

    assert not refuses(breaker)


def test_one_probe_after_the_pause(breaker: Breaker, time: Time) -> None:
    """Not before the pause is over, and while the probe is under way nobody else."""
    fail(breaker, FAILURES_MAX)
    time.ns = PAUSE_NS - 1
    early = refuses(breaker)
    time.ns = PAUSE_NS

    probe = breaker.enter()

    assert (early, probe, refuses(breaker)) == (True, True, True)


def test_a_probe_that_succeeds_closes_it(breaker: Breaker, time: Time) -> None:
    """From then on everybody asks, and the count begins anew."""
    fail(breaker, FAILURES_MAX)
    time.ns = PAUSE_NS
    breaker.succeeded(probe=breaker.enter())
    fail(breaker, FAILURES_MAX - 1)

    assert not refuses(breaker)


def test_a_probe_that_fails_opens_it_again(breaker: Breaker, time: Time) -> None:
    """The pause begins anew with the probe's failure."""
    fail(breaker, FAILURES_MAX)
    time.ns = PAUSE_NS
    probe = breaker.enter()
    time.ns = 2 * PAUSE_NS - 1
    breaker.failed(probe=probe)
    time.ns = 3 * PAUSE_NS - 2
    early = refuses(breaker)
    time.ns = 3 * PAUSE_NS - 1

    assert (early, breaker.enter()) == (True, True)


def test_an_abandoned_probe_leaves_room_for_the_next(breaker: Breaker, time: Time) -> None:
    """A probe that said nothing about the server does not keep the breaker open for ever."""
    fail(breaker, FAILURES_MAX)
    time.ns = PAUSE_NS
    breaker.abandoned(probe=breaker.enter())

    assert breaker.enter() is True


def test_a_late_answer_does_not_close_an_open_breaker(breaker: Breaker) -> None:
    """A call that began before says nothing about now."""
    late = breaker.enter()
    fail(breaker, FAILURES_MAX)
    breaker.succeeded(probe=late)

    assert refuses(breaker)


@given(st.lists(st.sampled_from(["fail", "succeed", "abandon", "wait"]), max_size=60))
def test_it_never_refuses_for_good(steps: list[str]) -> None:
    """Whatever happened before: after a pause a call is let in, and its success lets everybody in."""
    time = Time()
    breaker = Breaker(time)
    for step in steps:
        if step == "wait":
            time.ns += PAUSE_NS // 2
            continue
        try:
            probe = breaker.enter()
        except EngineFailureError:
            continue
        {"fail": breaker.failed, "succeed": breaker.succeeded, "abandon": breaker.abandoned}[step](
            probe=probe
        )

    time.ns += PAUSE_NS
    breaker.succeeded(probe=breaker.enter())

    assert not refuses(breaker)


def test_threads_get_one_probe_between_them(breaker: Breaker, time: Time) -> None:
    """However many ask at the end of the pause, one of them is the probe."""
    fail(breaker, FAILURES_MAX)
    time.ns = PAUSE_NS
    let_in: list[bool] = []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        try:
            let_in.append(breaker.enter())
        except EngineFailureError:
            return

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert let_in == [True]
