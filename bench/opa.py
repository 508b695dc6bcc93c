"""The engines side by side: a decision of the OPA engine, of the bare client, of bare HTTP, and in process.

One OPA on loopback with the same policies answers all of them; documents are those that the read gate asks.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter_ns

import urllib3
from opa_client import OpaClient

from agent_runtime_ref.policy.bundle import Bundle, load_bundle
from agent_runtime_ref.policy.engine import PolicyEngine
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.policy.opa_server import OpaSettings
from agent_runtime_ref.resources import policies_path
from bench.data import NOW_US, Question, Slice, candidates
from bench.governed import READ, Reader, admitted, listening
from bench.ratios import Timings, Took, interleaved
from bench.report import Line, Measured, Times
from tests.opa import NoOpaError, OpaProcess, opa_binary

CLIENT_BOUND = 1.2
EMBEDDED_BOUND = 1 / 8
THREADS = 16
THREADS_BOUND = 1 / 0.8
_CANDIDATES = (0, 1, 5, 50)
_TENANT = "tenant-000"


def measure(*, rounds: int, thread_rounds: int) -> Measured:
    """Measure single decisions, and many on sixteen threads; where there is no OPA, say so."""
    try:
        opa_binary()
    except NoOpaError as error:
        return Measured(skipped=[f"the OPA engine: {error}"])
    with _engines() as (server, embedded, asking):
        documents = _documents()
        singles = {
            count: _singles(server, embedded, asking, documents[count], rounds) for count in _CANDIDATES
        }
        crowded = _crowded({"embedded": embedded, "OPA engine": asking}, documents[0], thread_rounds)
    return Measured([*_client_lines(singles), *_crowd_lines(crowded)], _times(singles))


@contextmanager
def _engines() -> Iterator[tuple[OpaProcess, PolicyEngine, PolicyEngine]]:
    """Give a server and both engines, all with the same policies."""
    with TemporaryDirectory(prefix="bench-opa-") as scratch:
        folder = Path(scratch) / "policies"
        shutil.copytree(policies_path(), folder, ignore=shutil.ignore_patterns("*_test.rego"))
        bundle = load_bundle(folder)
        with OpaProcess.of(folder) as server:
            embedded, asking = open_engine("embedded", bundle), _asking(server, bundle)
            yield server, embedded, asking
            asking.close()
            embedded.close()


def _asking(server: OpaProcess, bundle: Bundle) -> PolicyEngine:
    """Return the OPA engine with a deadline that a busy machine keeps."""
    return open_engine(server.engine, bundle, opa=OpaSettings(deadline_ms=60_000), environ={})


def _documents() -> dict[int, str]:
    """Return what the read gate asks about so many candidates."""
    memory, engine = listening("memory:")
    with memory:
        admitted(memory, candidates(Slice(_TENANT, 0, 200, NOW_US)), _TENANT)
        engine.heard.clear()
        question = Question(_TENANT, None, ("short_term", "long_term", "profile"), "low", 365)
        Reader(memory).read(question, limit=max(_CANDIDATES))
        asked = [json.loads(text) for entrypoint, text in engine.heard if entrypoint == READ]
    shown = [one for document in asked for one in document["candidates"]]
    if len(shown) < max(_CANDIDATES):
        raise SystemExit(f"the read gate asked about {len(shown)} candidates only")
    return {
        count: json.dumps(
            {**asked[0], "candidates": shown[:count]}, separators=(",", ":"), ensure_ascii=False
        )
        for count in _CANDIDATES
    }


def _singles(
    server: OpaProcess, embedded: PolicyEngine, asking: PolicyEngine, document: str, rounds: int
) -> Timings:
    """Put one document to everybody in turn; all must answer the same."""
    client = OpaClient("127.0.0.1", server.port)
    value = json.loads(document)
    pool = urllib3.HTTPConnectionPool("127.0.0.1", server.port)
    body = b'{"input":' + document.encode() + b"}"

    def pooled(_: int) -> object:
        headers = {"Content-Type": "application/json"}
        answer = pool.request("POST", "/v1/data/memory/read/decision", body=body, headers=headers)
        return json.loads(answer.data)["result"]

    contenders: dict[str, Callable[[int], object]] = {
        "OPA engine": lambda _: asking.evaluate(READ, document),
        "bare client": lambda _: client.query_rule(value, "memory.read", "decision")["result"],
        "bare HTTP": pooled,
        "embedded": lambda _: embedded.evaluate(READ, document),
    }
    answers = [contender(0) for contender in contenders.values()]
    if any(one != answers[0] for one in answers):
        raise SystemExit("the engines do not answer the same; there is nothing to compare")
    timings = interleaved(contenders, range(rounds), seed="opa", warm_up=20)
    client.close_connection()
    pool.close()
    return timings


def _crowded(engines: dict[str, PolicyEngine], document: str, rounds: int) -> Timings:
    """Decide the same number of times on one thread and on sixteen; what is timed is one decision."""
    each = 30
    with ThreadPoolExecutor(THREADS) as threads:

        def alone(engine: PolicyEngine) -> Took:
            return _took(lambda: [engine.evaluate(READ, document) for _ in range(THREADS * each)])

        def together(engine: PolicyEngine) -> Took:
            def share(_: int) -> None:
                for _ in range(each):
                    engine.evaluate(READ, document)

            return _took(lambda: list(threads.map(share, range(THREADS))))

        def _took(work: Callable[[], object]) -> Took:
            begun = perf_counter_ns()
            work()
            return Took((perf_counter_ns() - begun) // (THREADS * each), 0)

        contenders: dict[str, Callable[[int], object]] = {}
        for name, engine in engines.items():
            contenders[f"{name}, 1 thread"] = lambda _, engine=engine: alone(engine)
            contenders[f"{name}, {THREADS} threads"] = lambda _, engine=engine: together(engine)
        return interleaved(contenders, range(rounds), seed="crowd", warm_up=1)


def _client_lines(singles: dict[int, Timings]) -> Iterator[Line]:
    for count, timings in singles.items():
        what = f"{count or 'no'} candidates" if count != 1 else "1 candidate"
        against = timings.ratio("OPA engine", "bare client")
        yield Line(
            f"OPA engine / bare `query_rule`, {what}", against.p50, CLIENT_BOUND if count == 0 else None,
            note=against.note,
        )  # fmt: skip
        http = timings.ratio("bare HTTP", "bare client")
        yield Line(f"bare pooled HTTP / bare `query_rule`, {what}", http.p50, note=http.note)
        inside = timings.ratio("embedded", "OPA engine")
        note = f"{1 / inside.p50:.1f} times faster; {inside.note}"
        bound = EMBEDDED_BOUND if count == 0 else None
        yield Line(f"embedded decision / OPA engine, {what}", inside.p50, bound, note=note)


def _crowd_lines(crowded: Timings) -> Iterator[Line]:
    for name in ("embedded", "OPA engine"):
        against = crowded.ratio(f"{name}, {THREADS} threads", f"{name}, 1 thread")
        note = f"throughput {1 / against.p50:.2f}×, median of rounds {against.rounds:.2f}×"
        yield Line(
            f"{name}: a decision under {THREADS} threads / one thread", against.p50, THREADS_BOUND, note=note
        )


def _times(singles: dict[int, Timings]) -> list[Times]:
    return [
        Times(f"decision, {count} candidates: {name}", found)
        for count, timings in singles.items()
        for name, found in timings.wall.items()
    ]
