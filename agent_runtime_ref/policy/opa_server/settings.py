"""The section `opa` of runtime.yaml: who we are to the OPA server, and what it must run."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_runtime_ref.errors import UsageError

__all__ = ["OpaBundle", "OpaSettings"]


CHECKS = ("content", "revision", "none")
DEADLINE_MS = (10, 60_000)
CONNECTIONS = (1, 1_024)


@dataclass(frozen=True, slots=True)
class OpaBundle:
    """How the server proves which policies it runs.

    `check` is `content` (its modules and settings are compared with the local bundle, and each answer names
    the revision), `revision` (each answer names the revision, and that is enough) or `none`.
    """

    name: str | None = None  # as the server calls it; None: any of its bundles may be ours
    revision: str | None = None  # None: the revision of the local bundle
    check: str = "content"

    def __post_init__(self) -> None:
        # A word that nobody knows would check less than was meant.
        if self.check not in CHECKS:
            raise UsageError(f"opa bundle check {self.check!r} must be one of {', '.join(CHECKS)}")


@dataclass(frozen=True, slots=True)
class OpaSettings:
    """The section `opa` of runtime.yaml; paths are absolute, or relative to the current folder.

    Raises:
        UsageError: a number out of its bounds.
    """

    token_file: str | None = None
    ca_file: str | None = None  # instead of the authorities that the machine trusts
    certificate_file: str | None = None  # of the client, PEM
    key_file: str | None = None  # None: in the certificate's file
    deadline_ms: int = 1_500  # of a decision, connecting and reading included
    connections: int = 16  # at most; a caller beyond them waits within its deadline
    bundle: OpaBundle = field(default_factory=OpaBundle)

    def __post_init__(self) -> None:
        # The libraries take 0 connections for any number of them.
        for name, (least, most) in (("deadline_ms", DEADLINE_MS), ("connections", CONNECTIONS)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise UsageError(f"opa {name} {value!r} must be a whole number from {least} to {most}")
