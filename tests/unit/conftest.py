"""Fixtures of several unit tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.otlp_receiver import Receiver


@pytest.fixture
def short_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for a collector that is not there."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.7")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that takes everything."""
    from tests.otlp_receiver import Receiver  # needs the extra `otel`

    with Receiver() as running:
        yield running
