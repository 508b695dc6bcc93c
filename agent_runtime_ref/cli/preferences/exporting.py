"""`preferences export`: what is kept about a user, in one file, for the user himself."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.acting import CLASSES
from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import OPERATOR, names_store, opened
from agent_runtime_ref.cli.output import json_text, print_document
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.preferences.whose import add_whose, caller_of, preferences_of
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import Caller, MemoryRecord
    from agent_runtime_ref.preferences import Preference, PreferenceStore
    from agent_runtime_ref.runtime import GovernedMemory

_NOT_COVERED = (
    (
        "the decision log, where the user stands under a pseudonym, and as a principal by his name where the"
        " call had another subject, as those about sessions have"
    ),
    "without the role operator: older wordings, what expired, and what waits for its review",
    "backups, and stores that the command was not told of",
    "turns that wait to be worked on, beside the memory of the agent",
)


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "export",
        help="what is kept about a user, in one file",
        description=(
            "Write what is kept about a user into one JSON document: his preferences, the other records\n"
            "about him that he may read, in the store that is named too, the constraints and turns of his\n"
            "sessions and, for the local tenant, what he talked about. Its owner alone can read the file.\n"
            "It is for the user himself and for an operator: another principal is refused.\n"
            "With --role operator also what no reader is shown: older wordings, what waits for its review."
        ),
        epilog=example("preferences export -o me.json", "preferences export --store sqlite:memory.db"),
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="default: standard output")
    add_whose(parser, "store", "engine", "policies", "log", "trace")


def run(args: argparse.Namespace) -> int:
    """Write the document and return the exit code."""
    caller = caller_of(args)
    target = None if args.output is None else _target(args.output)
    with reported(), preferences_of(args, asks=True) as store:
        preferences = store.read(caller=caller)
        document = {
            "kind": "personal_data_export",
            "tenant_id": caller.tenant_id,
            "user_id": caller.own_subject,
            "preferences": _preferences(store, preferences),
            "records": _records(args, store, caller, {one.record_id for one in preferences}),
            "sessions": _sessions(caller),
            "conversations": _conversations(caller),
            "not_covered": [*_NOT_COVERED, *_set_aside(store, caller)],
        }
    if target is None:
        print_document(document)
        return DONE
    _write(target, json_text(document) + "\n")
    note(f"written to `{target}`")
    return DONE


def _set_aside(store: PreferenceStore, caller: Caller) -> list[str]:
    """Return a sentence for each file about the user that was damaged and put aside."""
    from agent_runtime_ref.session_state.places import sessions_folder, user_folder

    threads = user_folder(caller, sessions_folder()).glob("*/*.damaged-*")
    return [
        f"`{path}`, which was damaged and put aside" for path in (*store.aside_of(caller), *sorted(threads))
    ]


def _preferences(store: PreferenceStore, found: Iterable[Preference]) -> dict[str, Any]:
    return {"source": store.address, "preferences": [one.to_document() for one in found]}


def _records(
    args: argparse.Namespace, store: PreferenceStore, caller: Caller, shown: set[str]
) -> list[dict[str, Any]]:
    """Return the other records about the user: beside his preferences, and in the store that is named."""
    parts = []
    memory = store.memory_of(caller)
    if memory is not None:
        part = _part(memory, caller)
        part["records"] = [
            record.to_document() for record in part["records"] if record.memory_id not in shown
        ]
        parts.append({"source": store.address, **part})
    if names_store(args):
        with opened(args) as other:
            if memory is not None and _is_same(memory.store_url, other.store_url):
                return parts
            part = _part(other, caller)
            part["records"] = [record.to_document() for record in part["records"]]
            parts.append({"source": other.store_url, **part})
    return parts


def _is_same(one: str, other: str) -> bool:
    """Tell whether two addresses name one store, by whatever path."""
    names = [address.partition(":") for address in (one, other)]
    if names[0][0] != names[1][0] or names[0][0] not in ("file", "sqlite", "jsonl"):
        return one == other
    return Path(names[0][2]).resolve() == Path(names[1][2]).resolve()


def _part(memory: GovernedMemory, caller: Caller) -> dict[str, Any]:
    """Return the records about the user that he may read; an operator is shown those of every status."""
    from agent_runtime_ref.clock import RandomIds
    from agent_runtime_ref.preferences.paging import own_records

    if OPERATOR in caller.roles:
        return {"records": _of_every_status(memory, caller), "kept_out": {}}
    own = own_records(
        memory,
        lambda record: True,
        caller=caller,
        purpose="answer_generation",
        classes=CLASSES,
        ids=RandomIds(),
    )
    return {"records": list(own.records), "kept_out": dict(own.kept_out)}


def _of_every_status(memory: GovernedMemory, caller: Caller) -> list[MemoryRecord]:
    from agent_runtime_ref.enforcement.attributes import Inspection

    most = memory.bundle.settings["limits"]["inspection_max"]
    inspection = Inspection(caller.principal_id, most, tenant_id=caller.tenant_id)
    hits = memory.inspect(inspection, caller=caller).hits
    if len(hits) == most:
        note(f"the first {most} records of `{memory.store_url}` were looked at, and there may be more")
    return [hit.record for hit in hits if hit.record.subject == caller.own_subject]


def _sessions(caller: Caller) -> list[dict[str, Any]]:
    """Return the files of the user's threads as they are; one that is damaged is named and not read."""
    from agent_runtime_ref.session_state.files import folders_in
    from agent_runtime_ref.session_state.places import sessions_folder, user_folder

    folder = user_folder(caller, sessions_folder())
    threads = []
    for name in folders_in(folder):
        folders_in(folder / name)  # a folder that cannot be looked into must not look like an empty one
        threads.append({"folder": name, "files": _files(folder / name)})
    return threads


def _files(folder: Path) -> Mapping[str, Any]:
    held: dict[str, Any] = {}
    for path in sorted(folder.glob("*.json")):
        try:
            held[path.name] = json.loads(path.read_bytes())
        except (OSError, ValueError):
            held[path.name] = None
            note(f"`{path}` cannot be read and is not in the export")
    return held


def _conversations(caller: Caller) -> list[dict[str, Any]]:
    """Return the user's remote memory, which only the local tenant has."""
    from agent_runtime_ref.remote_memory import RemoteMemoryStore
    from agent_runtime_ref.remote_memory.governed import LOCAL_TENANT
    from agent_runtime_ref.remote_memory.runtime import user_file

    user_id = caller.own_subject
    path = user_file(user_id)
    if caller.tenant_id != LOCAL_TENANT or not path.exists():
        return []
    return [one.to_dict() for one in RemoteMemoryStore(path, user_id=user_id).read_all()]


def _target(name: str) -> Path:
    """Return the file to write, which must not be there: an export may be somebody else's.

    Raises:
        UsageError: it is there, or its folder is not.
    """
    path = Path(name)
    if path.exists() or path.is_symlink():
        raise UsageError(f"`{path}` is there already; name another file, or remove it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"there is no folder `{path.absolute().parent}`; make it, or name another file")
    return path


def _write(path: Path, text: str) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be written: {(error.strerror or str(error)).lower()}") from error
