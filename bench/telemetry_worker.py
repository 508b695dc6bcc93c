"""`python -m bench.telemetry_worker STORE RECORDS URL`: work at 200 operations a second when told to.

For each line on standard input a hundred writes and a hundred reads, in turns; the answer is a line of JSON
with the nanoseconds of each. With a URL the spans of the gates go to a collector there.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import count
from pathlib import Path
from time import perf_counter_ns, thread_time_ns

from bench.data import Corpus, candidate, questions
from bench.governed import Reader, opened, writer_of
from bench.write import new_records

RATE = 200
_PAIRS = 100
_ITEMS = 10_000


def main() -> int:
    """Work until standard input ends."""
    path, records, url = sys.argv[1:]
    if url:
        _trace(url)
    corpus = Corpus(int(records))
    asked = questions(corpus, _ITEMS, salt="telemetry")
    offered = new_records(corpus, _ITEMS)
    numbers = count()
    with opened(Path(path)) as memory:
        reader = Reader(memory)
        for _ in sys.stdin:
            found: dict[str, list[int]] = {"read": [], "write": [], "read cpu": [], "write cpu": []}
            begun = time.monotonic()
            for number in range(2 * _PAIRS):
                item = next(numbers) // 2 % _ITEMS
                time.sleep(max(0.0, begun + number / RATE - time.monotonic()))
                kind = "read" if number % 2 else "write"
                one = candidate(offered[item], 0)
                start, cpu = perf_counter_ns(), thread_time_ns()
                if kind == "read":
                    reader.read(asked[item])
                else:
                    memory.write(one, caller=writer_of(one.tenant_id))
                found[kind].append(perf_counter_ns() - start)
                found[f"{kind} cpu"].append(thread_time_ns() - cpu)
            found["took"] = [int((time.monotonic() - begun) * 1e9)]
            print(json.dumps(found), flush=True)
    return 0


def _trace(url: str) -> None:
    """Set up what an application sets up that wants to see spans."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    trace.set_tracer_provider(provider)


if __name__ == "__main__":
    sys.exit(main())
