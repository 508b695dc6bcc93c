"""The section `opa` of runtime.yaml: who we are to the OPA server, and what it must run."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["OpaBundle", "OpaSettings"]


@dataclass(frozen=True, slots=True)
class OpaBundle:
    """How the server proves which policies it runs.

    `check` is `content` (its modules and settings are compared with the local bundle, and each answer names
    the revision), `revision` (each answer names the revision, and that is enough) or `none`.
    """

    name: str | None = None  # as the server calls it; None: any of its bundles may be ours
    revision: str | None = None  # None: the revision of the local bundle
    check: str = "content"


@dataclass(frozen=True, slots=True)
class OpaSettings:
    """The section `opa` of runtime.yaml; paths are absolute, or relative to the current folder."""

    token_file: str | None = None
    ca_file: str | None = None  # instead of the authorities that the machine trusts
    certificate_file: str | None = None  # of the client, PEM
    key_file: str | None = None  # None: in the certificate's file
    deadline_ms: int = 1_500  # of a decision, connecting and reading included
    connections: int = 16  # at most; a caller beyond them waits within its deadline
    bundle: OpaBundle = field(default_factory=OpaBundle)
