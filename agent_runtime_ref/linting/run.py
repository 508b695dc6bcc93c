"""One run of lint: from paths to a report; everything that is wrong is told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.linting.documents import NOT_CHECKED, is_ours, is_wellformed, lint_document
from agent_runtime_ref.linting.examples import Examples, lint_directions, lint_stray
from agent_runtime_ref.linting.findings import Finding, Report, finding, shown_path
from agent_runtime_ref.linting.policies import bundle_files, lint_archive, lint_module, lint_policies
from agent_runtime_ref.linting.schemas import lint_ids, lint_schema
from agent_runtime_ref.linting.targets import Target, targets_of, unique
from agent_runtime_ref.resources import configs_path, policies_path, schemas_path

__all__ = ["bundled_paths", "lint_paths"]

Check = Callable[[Target], Iterable[Finding]]


def bundled_paths() -> tuple[Path, ...]:
    """Return what is linted where no path is named: schemas with their examples, configs, policies."""
    return schemas_path(), configs_path(), policies_path()


def lint_paths(paths: Sequence[str | Path], *, settings: str | Path | None = None) -> Report:
    """Return the report on files and folders; `settings` is a runtime.yaml, whatever it is called.

    Raises:
        UsageError: a path does not exist, or has nothing in it that lint knows.
    """
    targets = unique([*_targets([Path(path) for path in paths]), *_settings(settings)])
    found = {one for target in targets for one in _CHECKS[target.kind](target)}
    found.update(lint_ids([target.path for target in targets if target.kind == "schema"]))
    files = {shown_path(path) for target in targets for path in _files(target)}
    files -= {one.path for one in found if one.rule_id == NOT_CHECKED}
    return Report(findings=tuple(sorted(found)), files=tuple(sorted(files)))


def _targets(paths: Sequence[Path]) -> Iterator[Target]:
    """Yield the targets of all paths, once each path is known to have some."""
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise UsageError(f"no file or folder {_listed(missing)}; nothing was checked")
    found = {path: targets_of(path) for path in paths}
    empty = [path for path, targets in found.items() if not any(_counts(target) for target in targets)]
    if empty:
        raise UsageError(f"nothing to lint in {_listed(empty)}; name schemas, documents, configs or policies")
    for targets in found.values():
        yield from targets


def _settings(settings: str | Path | None) -> Iterator[Target]:
    if settings is not None:
        if not Path(settings).is_file():
            raise UsageError(f"no file {_listed([Path(settings)])}; nothing was checked")
        yield Target("document", Path(settings), schema="runtime_config", named=True)


def _counts(target: Target) -> bool:
    """Say whether something will be checked: a document in a folder may be somebody else's."""
    if target.kind != "document" or target.named:
        return True
    return is_ours(target.path) or not is_wellformed(target.path)


def _schema(target: Target) -> Iterator[Finding]:
    yield from lint_schema(target.path)
    yield from lint_directions(target.path)


def _files(target: Target) -> list[Path]:
    """Return the files that a target consists of."""
    if target.kind == "bundle":
        return bundle_files(target.path)
    return [target.path] if _counts(target) else []


def _listed(paths: Sequence[Path]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


_CHECKS: Mapping[str, Check] = {
    "schema": _schema,
    "example": Examples().lint,
    "stray": lambda target: lint_stray(target.path),
    "document": lint_document,
    "bundle": lambda target: lint_policies(target.path),
    "module": lambda target: lint_module(target.path, target.bundle or target.path.parent),
    "archive": lambda target: lint_archive(target.path),
    "closed": lambda target: [finding("LINT-F-001", target.path, "the folder cannot be listed")],
}
