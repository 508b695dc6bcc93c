"""`policy build`: the policies as one archive, signed or not, for OPA and for a running memory."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import add_settings, settings_of
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import example, worded
from agent_runtime_ref.cli.terminal import warn
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.policy.signing import Signer

# Those that OPA verifies and that sign the same text the same way twice; a test compares the list.
ALGORITHMS = ("HS256", "HS384", "HS512", "RS256", "RS384", "RS512", "ES256", "ES384", "ES512")
_DEFAULT_ALGORITHM = "RS256"  # as with `opa build`


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    build = subparsers.add_parser(
        "build",
        help="make an OPA bundle of the policies, signed or not",
        description=(
            "Make an OPA bundle of the policies: one archive with what decides, its manifest and, with a\n"
            "key, its signature. The same policies and the same key give the same bytes. The file is\n"
            "replaced in one step, so that a process that watches it never sees half of it."
        ),
        epilog=example(
            "policy build -o bundle.tar.gz",
            "policy build -o bundle.tar.gz --policies ./policies --signing-key private.pem --scope memory",
        ),
    )
    build.add_argument("-o", "--output", metavar="FILE", required=True, help="the archive to write")
    build.add_argument(
        "--revision", metavar="R", help="default: that of the manifest, with the beginning of the digest"
    )
    signing = build.add_argument_group("signature (needs the extra `signing`)")
    signing.add_argument("--signing-alg", choices=ALGORITHMS, help=f"default: {_DEFAULT_ALGORITHM}")
    signing.add_argument(
        "--signing-key", metavar="FILE", help="a private key in PEM; for HS256 and its like a secret"
    )
    signing.add_argument(
        "--key-id", type=worded, metavar="ID", help="the key's name in OPA; default: default"
    )
    signing.add_argument("--scope", type=worded, metavar="SCOPE", help="what is signed for; default: nothing")
    add_format(build, "json", "yaml")
    add_settings(build, "policies")


def run(args: argparse.Namespace) -> int:
    """Write the bundle, print what is in it and return the exit code."""
    from agent_runtime_ref.policy.build import build_bundle, write_bundle
    from agent_runtime_ref.resources import policies_path

    path = Path(args.output)
    if path.is_dir():
        raise UsageError(f"-o `{path}` is a folder; name the file to write")
    signer = _signer(args)
    built = build_bundle(policies_path(settings_of(args).policies), revision=args.revision, signer=signer)
    write_bundle(built, path)
    signature = None
    if signer is not None:
        algorithm = signer.key.algorithms[0]
        signature = {"algorithm": algorithm, "keyid": signer.keyid, "scope": signer.scope}
    described = {
        "file": str(path),
        "bytes": len(built.archive),
        "digest": built.digest,
        "revision": built.revision,
        "roots": list(built.roots),
        "signature": signature,
        "files": list(built.names),
    }
    print_document(described, format_of(args))
    return DONE


def _signer(args: argparse.Namespace) -> Signer | None:
    """Return who signs; None where no key is given.

    Raises:
        UsageError: something is said of a signature that has no key.
    """
    if args.signing_key is None:
        named = [name for name in ("signing_alg", "key_id", "scope") if getattr(args, name) is not None]
        if named:
            raise UsageError(
                f"--{named[0].replace('_', '-')} is for a signature; name a key with --signing-key"
            )
        return None
    from agent_runtime_ref.policy.signing import KEY_ID, Signer
    from agent_runtime_ref.policy.signing_keys import jws_of, signing_key

    algorithm = args.signing_alg or _DEFAULT_ALGORITHM
    jws_of((algorithm,))  # says now that the extra is missing, and not that the key is none
    key = signing_key(Path(args.signing_key), algorithm)
    for sentence in key.notes:
        warn(sentence)
    return Signer(key, args.key_id or KEY_ID, args.scope or "")
