"""Tests of the tests: small changes of a bundle, each of which some Rego test has to notice."""

from agent_runtime_ref.policy.mutation.equivalent import EQUIVALENT, Equivalent, read_equivalent
from agent_runtime_ref.policy.mutation.mutants import Mutant, Survivor
from agent_runtime_ref.policy.mutation.run import MutationReport, run_mutants

__all__ = [
    "EQUIVALENT",
    "Equivalent",
    "Mutant",
    "MutationReport",
    "Survivor",
    "read_equivalent",
    "run_mutants",
]
