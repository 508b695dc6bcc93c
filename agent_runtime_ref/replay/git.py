"""Files of a git revision, read without a checkout: nothing is written, and nothing of the repository is run.

Contents come from the object store as they are. `git archive` would apply the repository's attributes, which
may leave files out or rewrite them.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.policy.archive import ARCHIVE_BYTES_MAX, FILE_BYTES_MAX, FILES_MAX, TOTAL_BYTES_MAX

__all__ = ["DEFAULT_FOLDER", "files_of_revision"]

# Where policies are in a revision that is named without a path.
DEFAULT_FOLDER = "policies"
_SECONDS_MAX = 60
# A revision as people write them; what could be taken for an option or a second argument is none.
_REVISION = re.compile(r"[A-Za-z0-9_./@^~{}+-]{1,250}\Z")
_OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_PLAIN_FILES = ("100644", "100755")

Files = tuple[tuple[str, bytes], ...]


def files_of_revision(name: str, wanted: Callable[[str], bool]) -> Files:
    """Return path and bytes of the files in `REV` (its folder `policies`, else all of it) or `REV:PATH`.

    Of a folder those are read whose path in it is `wanted`. PATH is relative to the top of the repository
    that the working folder is in. A PATH that is a file is returned alone, under an empty path.

    Raises:
        UsageError: git is not there, or knows no such revision or path.
    """
    revision, colon, path = name.partition(":")
    if not _REVISION.match(revision) or revision.startswith("-") or "\0" in path:
        raise UsageError(f"`{name}` is no folder, no bundle and no git revision")
    commit = _object(f"{revision}^{{commit}}", name)
    if commit is None:
        raise UsageError(f"`{name}` is no folder and no bundle, and git knows no revision `{revision}` here")
    found = _object(f"{commit}:{path.strip('/')}" if colon else f"{commit}:{DEFAULT_FOLDER}", name)
    if found is None and not colon:
        found = _object(f"{commit}:", name)
    if found is None:
        raise UsageError(f"there is no `{path}` in git revision `{revision}`")
    if _run("cat-file", "-t", found).strip() == b"blob":
        _refuse_large(int(_run("cat-file", "-s", found)), ARCHIVE_BYTES_MAX)
        return (("", _run("cat-file", "blob", found)),)
    return tuple(sorted(_files(found, wanted)))


def _object(expression: str, name: str) -> str | None:
    """Return the id that git has for an expression; None where it has none. `name` is what was asked for."""
    done = _process("rev-parse", "--verify", "--quiet", "--end-of-options", expression)
    said = done.stdout.decode("ascii", "replace").strip()
    if done.returncode != 0 or not _OBJECT.match(said):
        if b"not a git repository" in done.stderr:
            raise UsageError(
                f"`{name}` is no folder and no bundle, and this folder is in no git repository, so that no "
                "revision can be named"
            )
        return None
    return said


def _files(tree: str, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield the plain files below a tree; links and submodules are none. Nothing large is ever read."""
    names: list[tuple[str, str]] = []
    total = 0
    for entry in _run("ls-tree", "-r", "-l", "-z", "--full-tree", tree).split(b"\0"):
        head, tab, raw_name = entry.partition(b"\t")
        mode, kind, found, size = head.decode("ascii").split() if tab else ("", "", "", "")
        name = raw_name.decode("utf-8", "surrogateescape")
        if kind == "blob" and mode in _PLAIN_FILES and wanted(name):
            names.append((name, found))
            total += int(size)
            _refuse_large(int(size), FILE_BYTES_MAX)
            _refuse_large(total, TOTAL_BYTES_MAX)
    if len(names) > FILES_MAX:
        raise UsageError(
            f"the revision has {len(names)} files there; name the folder of the policies, REV:PATH"
        )
    contents = _contents([found for _, found in names])
    for (name, _), content in zip(names, contents, strict=True):
        yield name, content


def _contents(objects: Sequence[str]) -> Iterator[bytes]:
    """Yield the content of each object, in order, from one process."""
    rest = memoryview(_run("cat-file", "--batch", stdin="".join(f"{one}\n" for one in objects).encode()))
    for _ in objects:
        end = bytes(rest[:200]).index(b"\n")
        size = int(bytes(rest[:end]).split()[2])
        yield bytes(rest[end + 1 : end + 1 + size])
        rest = rest[end + 2 + size :]


def _refuse_large(size: int, most: int) -> None:
    if size > most:
        raise UsageError(f"the revision has {size} bytes there; a bundle may have {most} in such a place")


def _run(*words: str, stdin: bytes | None = None) -> bytes:
    done = _process(*words, stdin=stdin)
    if done.returncode != 0:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[:200]
        raise UsageError(f"git could not read the revision: {said}")
    return done.stdout


def _process(*words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run git, which asks nobody anything and fetches nothing.

    Raises:
        UsageError: git is not there, or does not end.
    """
    quiet = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
    command = ["git", "--no-pager", "--no-replace-objects", "-c", "core.fsmonitor=false", *words]
    given = subprocess.DEVNULL if stdin is None else None
    try:
        return subprocess.run(
            command,
            input=stdin,
            stdin=given,
            capture_output=True,
            env={**os.environ, **quiet},
            timeout=_SECONDS_MAX,
            check=False,
        )
    except FileNotFoundError as error:
        raise UsageError(
            "there is no folder and no bundle of that name, and git is not installed, so that no revision "
            "can be named"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"git did not answer within {_SECONDS_MAX} seconds") from error
