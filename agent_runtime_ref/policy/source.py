"""Where the policies in force are taken from, and what they are held to each time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from agent_runtime_ref.errors import BundleError, UsageError
from agent_runtime_ref.policy.bundle import Bundle, bundle_of
from agent_runtime_ref.policy.bundle_files import Content, read_content
from agent_runtime_ref.policy.signing import Verification
from agent_runtime_ref.resources import VERIFICATION, policies_path

__all__ = ["PolicySource", "verification_of"]

SETTLE_SECONDS = 0.05
SETTLE_READS_MAX = 20


def verification_of(
    said: Mapping[str, str | None] | None = None, *, environ: Mapping[str, str] | None = None
) -> Verification | None:
    """Return what a signature is held to, by what was `said` (see `VERIFICATION`), else by the environment.

    None where neither names a key: then nothing is verified.

    Raises:
        UsageError: something is demanded of signatures, and there is no key to verify one with.
    """
    environ = os.environ if environ is None else environ
    parts = {name: (said or {}).get(name) or environ.get(variable) for name, variable in VERIFICATION.items()}
    key = parts.pop("verification_key")
    if not key:
        named = next((name for name, value in parts.items() if value), None)
        if named is None:
            return None
        raise UsageError(
            f"the {named} of signed policies is set, but no key; name its file as policies.verification_key "
            f"in runtime.yaml or in {VERIFICATION['verification_key']}"
        )
    return Verification(Path(key), parts["algorithm"], parts["keyid"], parts["scope"] or "")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySource:
    """A folder or an archive; what is there now is read by each call."""

    location: Path
    digest: str | None = None  # only the bundle that has it is taken
    verification: Verification | None = None  # only a bundle whose signature holds is taken

    @classmethod
    def at(
        cls,
        path: str | Path | None,
        *,
        digest: str | None = None,
        verification: Verification | None = None,
    ) -> Self:
        """Return the source at `path`; without one that of the environment, else the bundled policies.

        Raises:
            ResourceNotFoundError: the path does not exist.
        """
        location = policies_path(path).absolute()
        return cls(location=location, digest=digest, verification=verification)

    def content(self) -> Content:
        """Return what is there, read once.

        Raises:
            BundleError: reason bundle_missing.
        """
        return read_content(self.location, whole=self.verification is not None)

    def settled(self, sleep: Callable[[float], None] = time.sleep) -> Content:
        """Return what is there once two reads find the same: while somebody writes, it is half of something.

        Raises:
            BundleError: reason bundle_missing: nothing readable, or it keeps changing.
        """
        content = self.content()
        for _ in range(SETTLE_READS_MAX):
            sleep(SETTLE_SECONDS)
            before, content = content, self.content()
            if before.mark == content.mark:
                return content
        raise BundleError("bundle_missing", f"{self.location} keeps changing while it is read")

    def bundle(self, content: Content) -> Bundle:
        """Return the bundle in `content`.

        Raises:
            BundleError: it cannot be used, is not the pinned one, or its signature does not hold.
            UsageError: the verification key cannot be read.
        """
        return bundle_of(content, expected_digest=self.digest, verification=self.verification)

    def load(self) -> Bundle:
        """Return the bundle that is there now; see `bundle`."""
        return self.bundle(self.content())
