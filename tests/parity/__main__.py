"""Holds the embedded engine and a real OPA server to the same decisions: python -m tests.parity.

Exit code 0: no difference; 1: one at least, told with its document; 2: there is no OPA to compare with.
"""

from __future__ import annotations

import argparse
import sys
import time

from agent_runtime_ref.policy import EmbeddedEngine, load_bundle
from agent_runtime_ref.resources import policies_path
from tests.opa import NoOpaError, OpaProcess
from tests.parity.client import Opa
from tests.parity.compare import Agreement, Engines, Refusals
from tests.parity.vocabulary import vocabulary

SHOWN_MAX = 5
GATES = ("read", "write")


def main() -> int:
    """Run, print the counts, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity", description=__doc__)
    parser.add_argument("--documents", type=int, default=6_000, help="valid ones for each gate (%(default)s)")
    parser.add_argument("--invalid", type=int, default=3_000, help="invalid ones for each gate (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="another seed, other documents (%(default)s)")
    args = parser.parse_args()
    started = time.monotonic()
    try:
        found = run(args.documents, args.invalid, args.seed)
    except NoOpaError as error:
        print(f"parity: {error}", file=sys.stderr)
        return 2
    print(f"{'one difference is too many' if found else 'no difference'}; {time.monotonic() - started:.0f} s")
    return 1 if found else 0


def run(documents: int, invalid: int, seed: int) -> int:
    """Print what the engines say of generated documents, and return how many answers should not be.

    Raises:
        NoOpaError: there is no OPA to compare with.
    """
    folder = policies_path()
    bundle = load_bundle(folder)
    embedded = EmbeddedEngine(bundle)
    found = 0
    with OpaProcess.of(folder) as process, Opa(process.port) as opa:
        identity = embedded.identity
        print(f"policies {identity.revision} {identity.digest}")
        print(f"embedded engine and OPA {opa.version()}, seed {seed}")
        engines = Engines(embedded, opa, vocabulary(bundle.settings))
        for gate in GATES:
            said = engines.agreement(gate, documents, seed)
            prefix = f"MEM-{gate[0].upper()}-"
            _print_agreement(said, {one.rule_id for one in bundle.rules if one.rule_id.startswith(prefix)})
            told = engines.refusals(gate, invalid, seed)
            _print_refusals(told)
            found += len(said.different) + len(told.permitted) + told.documents - told.refused_by_gate
    embedded.close()
    return found


def _print_agreement(said: Agreement, rules: set[str]) -> None:
    what = "documents" if said.gate == "read" else "candidates"
    print(f"\n{said.gate}: {said.documents} documents with {said.candidates} candidates, the same in both")
    print(f"  {what}: {said.allowed} allowed, {said.denied} denied, {said.quarantined} quarantined")
    if said.gate == "read":
        print(f"  records admitted: {said.admitted}")
    for operation, count in said.operations.most_common():
        print(f"    {operation:10} {count:6d} documents, {said.permitted[operation]:5d} permit something")
    print(f"  rules that fired: {len(said.rules)} of {len(rules)}")
    for rule_id, count in sorted(said.rules.items()):
        print(f"    {rule_id} {count:7d}")
    if silent := sorted(rules - said.rules.keys()):
        print(f"  rules that did not: {', '.join(silent)}")
    print(f"  different: {len(said.different)}")
    for one in said.different[:SHOWN_MAX]:
        print(f"  {one}")


def _print_refusals(told: Refusals) -> None:
    print(f"  refused by the schema: {told.documents}, by the gate before any engine: {told.refused_by_gate}")
    for engine in ("embedded", "OPA"):
        denied, failed = told.denied[engine], told.failed[engine]
        print(f"    past the schema, {engine}: {denied} denied, {failed} without an answer")
    print(f"    permitted: {len(told.permitted)}")
    for place, count in told.places.most_common():
        print(f"      {count:4d} {place}")
    for one in told.permitted[:SHOWN_MAX]:
        print(f"      {one}")


if __name__ == "__main__":
    sys.exit(main())
