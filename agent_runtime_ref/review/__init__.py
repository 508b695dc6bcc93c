"""The review of a policy bundle for somebody who reads no code: rules, controls, tests, computed examples."""

from agent_runtime_ref.review.build import review_bundle
from agent_runtime_ref.review.document import document_of
from agent_runtime_ref.review.html import html_text
from agent_runtime_ref.review.markdown import markdown_text
from agent_runtime_ref.review.model import ERROR, Finding, Review, RuleView

__all__ = [
    "ERROR",
    "Finding",
    "Review",
    "RuleView",
    "document_of",
    "html_text",
    "markdown_text",
    "review_bundle",
]
