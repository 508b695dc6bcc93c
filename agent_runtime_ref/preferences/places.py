"""Where preferences are kept: an address, and from it the governed memory of one user or of all."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.errors import StoreAddressError
from agent_runtime_ref.resources import data_home
from agent_runtime_ref.store_address import SCHEMES, shown

if TYPE_CHECKING:
    from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["VARIABLE", "Places", "address_of", "file_name", "safe_join"]

VARIABLE = "AGENT_RUNTIME_PREFERENCES"
# Users whose memory stays open; one costs as much as an engine, and nothing is lost by opening it again.
OPEN_MAX = 32
_LEGIBLE = re.compile(r"[^a-z0-9]+")
_NAME_CHARACTERS = 24
_HELP = "name file:DIR, sqlite:PATH or redis://HOST"

Open = Callable[..., "GovernedMemory"]


def address_of(environ: Mapping[str, str] | None = None) -> str:
    """Return the address that the environment names, else a folder below this user's own state."""
    environ = os.environ if environ is None else environ
    return environ.get(VARIABLE, "").strip() or f"file:{data_home(environ) / 'preferences'}"


def file_name(tenant_id: str, subject: str) -> str:
    """Return the name of a user's file: legible in front, and behind it what no other user shares.

    Ids are compared byte for byte, and a file system may not: so the digest over both decides, and what is
    legible is folded. Nothing of an id but ASCII letters and digits reaches a file system.
    """
    parts = [len(one.encode()).to_bytes(8, "big") + one.encode() for one in (tenant_id, subject)]
    digest = hashlib.sha256(b"".join(parts)).hexdigest()[:32]
    legible = _LEGIBLE.sub("-", subject.casefold())[:_NAME_CHARACTERS].strip("-")
    return f"{legible or 'user'}-{digest}.json"


def safe_join(folder: Path, name: str) -> Path:
    """Return `name` in `folder`, which it does not leave: not by its own parts, and not by a link.

    Raises:
        StoreAddressError: it would.
    """
    root = folder.resolve()
    path = (root / name).resolve()
    if path.parent != root:
        raise StoreAddressError(f"file:{folder}", "a name in it leads out of the folder")
    return path


class Places:
    """The governed memories behind one address. Thread-safe."""

    def __init__(self, address: str, open_memory: Open, *, origin: str | None = None) -> None:
        """Name the address; nothing is opened or made before it is needed.

        `open_memory(store, must_exist=...)` opens governed memory. `origin` is the variable that says the
        address, for errors.

        Raises:
            StoreAddressError: it is of no known kind, or a folder is not named.
        """
        self.address = address
        self._origin = origin
        self._open = open_memory
        self._guard = threading.Lock()
        self._held: OrderedDict[str, GovernedMemory] = OrderedDict()
        scheme, _, rest = address.partition(":")
        if scheme not in SCHEMES or ":" not in address:
            raise self._misread(_HELP)
        if scheme in ("file", "sqlite", "jsonl") and rest.startswith("//"):
            raise self._misread(f"a file or folder is named without `//`; {_HELP}")
        if scheme == "file" and (not rest.strip() or "\0" in rest):
            raise self._misread(f"a folder is missing; {_HELP}")
        self._folder = Path(rest) if scheme == "file" else None

    def of(self, caller: Caller, *, creates: bool) -> GovernedMemory | None:
        """Return the memory that holds the preferences of the caller's subject.

        None where there is none yet and `creates` is not set; nothing is made then.

        Raises:
            StoreError: it cannot be opened.
        """
        store = self._store(caller)
        scheme, _, path = store.partition(":")
        if self._folder is not None and self._folder.exists() and not self._folder.is_dir():
            raise self._misread("this is a file; name the folder of the users' files")
        if not creates and scheme in ("file", "sqlite", "jsonl") and not Path(path).exists():
            return None
        with self._guard:
            memory = self._held.get(store)
            if memory is None:
                if creates and self._folder is not None:
                    _make_folder(self._folder)
                # A user's file that is there is opened whatever is in it: what is damaged is put aside.
                looks = not creates and self._folder is None
                memory = self._held[store] = self._open(store, must_exist=looks)
                if len(self._held) > OPEN_MAX:
                    # Not closed: another thread may be using it. It holds no file open.
                    self._held.popitem(last=False)
            self._held.move_to_end(store)
            return memory

    def path_of(self, caller: Caller) -> Path | None:
        """Return the file of the caller's subject; None where users do not have one each."""
        if self._folder is None:
            return None
        return safe_join(self._folder, file_name(caller.tenant_id, caller.own_subject))

    def aside_of(self, caller: Caller) -> list[Path]:
        """Return the files of the caller's subject that were damaged and lie aside; they hold his words."""
        path = self.path_of(caller)
        return [] if path is None else sorted(path.parent.glob(f"{path.name}.damaged-*"))

    def close(self) -> None:
        """Close what is open."""
        with self._guard:
            held = list(self._held.values())
            self._held.clear()
        for memory in held:
            memory.close()

    def _misread(self, problem: str) -> StoreAddressError:
        named = problem if self._origin is None else f"{problem}, in {self._origin}"
        return StoreAddressError(shown(self.address), named)

    def _store(self, caller: Caller) -> str:
        path = self.path_of(caller)
        return self.address if path is None else f"file:{path}"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreAddressError(f"file:{folder}", (error.strerror or str(error)).lower()) from error
