"""The decision point: bundles of Rego policies and the engines that evaluate them."""

from agent_runtime_ref.policy.bundle import Bundle, load_bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.policy.engine import BundleIdentity, PolicyEngine
from agent_runtime_ref.policy.metadata import RuleInfo
from agent_runtime_ref.policy.signing import Verification

__all__ = [
    "Bundle",
    "BundleIdentity",
    "EmbeddedEngine",
    "PolicyEngine",
    "RuleInfo",
    "Verification",
    "load_bundle",
]
