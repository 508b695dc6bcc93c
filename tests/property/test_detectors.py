"""Properties of the detectors: a secret never survives redaction, and no input is too much for them."""

from __future__ import annotations

import base64
import json
import string
from urllib.parse import quote

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime_ref.enforcement.decoding import SEGMENTS_MAX, decoded_segments
from agent_runtime_ref.enforcement.detectors import Detectors, redact
from agent_runtime_ref.enforcement.normal_forms import normal_forms
from agent_runtime_ref.resources import policies_path

DETECTORS = Detectors(
    json.loads((policies_path() / "memory" / "detectors" / "data.json").read_text(encoding="utf-8"))
)
TAILS = st.text(string.ascii_uppercase + string.digits, min_size=16, max_size=16)
PROSE = st.text("abc def, 你好 гд .:\n", max_size=40)
WRITINGS = {
    "as written": lambda secret: secret,
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "hex": lambda secret: secret.encode().hex(),
    "url": lambda secret: "".join(f"%{ord(c):02x}" for c in secret),
    "html": lambda secret: "".join(f"&#{ord(c)};" for c in secret),
    "zero width": lambda secret: "\u200b".join(secret),
    "full width": lambda secret: "".join(chr(ord(c) + 0xFEE0) for c in secret),
    "spaced": lambda secret: " ".join(secret),
    "quoted url": lambda secret: quote(secret + " "),
}


@settings(max_examples=150, deadline=None)
@given(TAILS, PROSE, PROSE, st.sampled_from(sorted(WRITINGS)))
def test_secret_never_survives_redaction(tail: str, before: str, after: str, writing: str) -> None:
    """However a key is written, neither it nor anything that a detector still reads as one is left."""
    written = WRITINGS[writing]("AKIA" + tail)
    text = f"{before} {written} {after}"
    secrets = [finding for finding in DETECTORS.scan({"c": text}) if finding.type.startswith("secret.")]
    redacted = redact(text, secrets)

    assert written not in redacted
    assert [f for f in DETECTORS.scan({"c": redacted}) if f.type.startswith("secret.")] == []


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_spans_lie_within_the_text(text: str) -> None:
    """Whatever is scanned, findings are spans of it, in order."""
    findings = DETECTORS.scan({"c": text})

    assert all(0 <= finding.start < finding.end <= len(text) for finding in findings)
    assert sorted(findings, key=lambda f: (f.start, f.end, f.type)) == list(findings)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        [
            "a",
            "ignore ",
            "eyJ",
            "sk-",
            "QUFB",
            " ",
            "a ",
            "%41",
            "a.b.",
            "12 ",
            "password: ",
            "忽略之前",
            "&#97;",
            "a://b:c",
            "\n",
            "Ａ",
            "a\u200b",
            "-----BEGIN PRIVATE KEY-----",
            "when user asks ",
            "((((",
            "\\u0061",
        ]
    ),
    st.integers(min_value=1, max_value=2_000),
)
def test_long_runs_ask_for_bounded_work(unit: str, times: int) -> None:
    """Repetition makes no more than a fixed number of forms and of decoded segments."""
    text = unit * times
    forms = list(normal_forms(text, frozenset({"ignore", "all"}), (("erongi",), ("vtaber",))))

    DETECTORS.scan({"c": text})
    assert len(forms) <= 3 * 9
    assert max(len(form.text) for form in forms) <= 2 * len(text) + 16
    assert len(decoded_segments(text)) <= SEGMENTS_MAX
