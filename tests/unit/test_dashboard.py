"""configs/grafana-dashboard.json: what it asks for is what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agent_runtime_ref.telemetry import conventions

DASHBOARD = Path(__file__).resolve().parents[2] / "configs" / "grafana-dashboard.json"
METRIC = re.compile(r"\bagent_memory_[a-z_]+")
LABELS = re.compile(r"\bby \(([^)]*)\)|\{([^}]*)\}|\bignoring\(([^)]*)\)")
KNOWN = {name: one for one in conventions.METRICS for name in one.prometheus}


def dashboard() -> dict[str, Any]:
    """The file."""
    document = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def expressions() -> list[str]:
    """Every query of it."""
    return [target["expr"] for panel in dashboard()["panels"] for target in panel["targets"]]


def metrics_of(expression: str) -> list[str]:
    """The metrics that a query asks for, without its labels."""
    return METRIC.findall(LABELS.sub("", expression))


def test_every_metric_is_in_the_registry_and_shown() -> None:
    """No panel asks for what is not emitted, and no metric is forgotten."""
    asked = {name for one in expressions() for name in metrics_of(one)}

    assert asked <= set(KNOWN)
    assert {KNOWN[name].name for name in asked} == {one.name for one in conventions.METRICS}


def test_every_label_is_one_of_its_metrics() -> None:
    """A label that a metric does not have would make an empty panel."""
    for expression in expressions():
        metrics = [KNOWN[name] for name in metrics_of(expression)]
        labels = {conventions.prometheus_name(name) for one in metrics for name in one.attributes}
        used = {
            part.strip().partition("=")[0].rstrip("!")
            for groups in LABELS.findall(expression)
            for part in "".join(groups).split(",")
        }
        assert metrics, expression
        assert used <= labels | {"le"}, expression


def test_it_is_a_dashboard_that_can_be_imported() -> None:
    """Titles, places that do not overlap, and a data source that is chosen, not one of somebody's."""
    document = dashboard()
    panels = document["panels"]
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
    assert max(x for x, _ in taken) < 24
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    assert document["templating"]["list"][0]["name"] == "datasource"
    assert document["schemaVersion"] >= 39
