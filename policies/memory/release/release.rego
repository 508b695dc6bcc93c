# METADATA
# title: Release policy
# description: >-
#   What of the review queue may be let go, and what it is given then. Who may do it, and why, is for
#   `memory.review`. Each of the two is one module: a set that is made in several of them comes out wrong in the
#   embedded engine where another package asks for it.
# scope: subpackages
# schemas:
#   - input: schema["policy_write_input.schema"]
#   - data.memory.settings: schema["policy_settings.schema"]
package memory.release

import data.memory.review
import data.memory.settings

import future.keywords.not
import rego.v1

releasing[index] := candidate if {
	input.operation == "release"
	some index, candidate in review.waiting
}

# METADATA
# title: What has expired is not released
# description: >-
#   A record is released while it has time to live, by its own expiry and by the retention that a released
#   record is given, which counts from the instant at which it was written.
# custom:
#   rule_id: MEM-W-405
#   severity: medium
#   scope: candidate
#   controls: [GDPR-5-1-E]
#   attributes: [created_ns, expires_ns]
#   settings: [classes, review]
deny contains {"index": index, "rule_id": "MEM-W-405", "reason": "expired"} if {
	some index, candidate in releasing
	not lives_on(index, candidate)
}

lives_on(index, candidate) if {
	candidate.queue.created_ns + (released[index].ttl_days * 86400000000000) > input.now_ns
	not_ended(candidate)
}

not_ended(candidate) if candidate.queue.expires_ns == null

not_ended(candidate) if {
	candidate.queue.expires_ns > input.now_ns
	candidate.queue.expires_ns < ""
}

# METADATA
# title: What could not be written today is not released
# description: >-
#   Class, kind and source still fit together, the source still gives some trust, and provenance, confidence
#   and size are what the class demands.
# custom:
#   rule_id: MEM-W-406
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM04, ISO-42001-DATA-PROVENANCE]
#   attributes: [memory_class, kind, source, provenance_known, confidence_millionths, size_bytes]
#   settings: [permitted, sources, classes, limits]
deny contains {"index": index, "rule_id": "MEM-W-406", "reason": "combination_not_permitted"} if {
	some index, candidate in releasing
	not object.get(settings.permitted, [candidate.memory_class, candidate.kind, candidate.source], false)
}

deny contains {"index": index, "rule_id": "MEM-W-406", "reason": "no_trust"} if {
	some index, _ in releasing
	not released[index]
}

deny contains {"index": index, "rule_id": "MEM-W-406", "reason": "provenance_missing"} if {
	some index, candidate in releasing
	not candidate.provenance_known == true
	not settings.classes[candidate.memory_class].durable == false
}

deny contains {"index": index, "rule_id": "MEM-W-406", "reason": "confidence_below_floor"} if {
	some index, candidate in releasing
	class := settings.classes[candidate.memory_class]
	not candidate.confidence_millionths >= class.confidence_floor_millionths
}

deny contains {"index": index, "rule_id": "MEM-W-406", "reason": "too_large"} if {
	some index, candidate in releasing
	not candidate.size_bytes <= settings.limits.size_bytes_max
}

# METADATA
# title: No secret is let go
# description: >-
#   A record in which the detectors find a password, key or token is not released, whatever its class and
#   whoever asks. It can be rejected and written anew without the secret.
# custom:
#   rule_id: MEM-W-407
#   severity: critical
#   scope: candidate
#   controls: [OWASP-LLM02, GDPR-5-1-C]
#   attributes: [findings]
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-407", "reason": "secret_found"} if {
	some index, _ in releasing
	some finding in review.found_in[index]
	startswith(finding.type, "secret.")
}

# METADATA
# title: A released record does not replace a better one
# description: >-
#   A record that was offered as a replacement supersedes what is active under its key at the moment of its
#   release, and only with at least the trust of that.
# custom:
#   rule_id: MEM-W-408
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM04]
#   attributes: [source, provenance_known, lineage, replaces, trust_rank]
#   settings: [trust_ranks, sources, review]
deny contains {"index": index, "rule_id": "MEM-W-408", "reason": "lower_trust_replaces_higher"} if {
	some index, candidate in releasing
	not candidate.replaces == null
	not settings.trust_ranks[released[index].trust_level] >= candidate.replaces.trust_rank
}

# METADATA
# title: What a released record was derived from is still there
# description: >-
#   Every record that it was derived from is active, and about nobody else.
# custom:
#   rule_id: MEM-W-409
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI03, OWASP-LLM04, ISO-42001-DATA-PROVENANCE]
#   attributes: [lineage]
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-409", "reason": "lineage_unknown"} if {
	some index, candidate in releasing
	not candidate.lineage.known == true
}

deny contains {"index": index, "rule_id": "MEM-W-409", "reason": "subject_mismatch"} if {
	some index, candidate in releasing
	not candidate.lineage.subjects_match == true
}

# METADATA
# title: What was forgotten is not let go
# description: >-
#   Content that was removed or rejected meanwhile stays so, unless its source may bring it back.
# custom:
#   rule_id: MEM-W-410
#   severity: high
#   scope: candidate
#   controls: [GDPR-17]
#   attributes: [tombstoned, source]
#   settings: [relearn_sources]
deny contains {"index": index, "rule_id": "MEM-W-410", "reason": "forgotten_content"} if {
	some index, candidate in releasing
	not candidate.tombstoned == false
	not settings.relearn_sources[candidate.source]
}

# METADATA
# title: The same memory is not let go twice
# description: >-
#   Where the same memory is active already, the one in quarantine adds nothing and is to be rejected.
# custom:
#   rule_id: MEM-W-411
#   severity: low
#   scope: candidate
#   controls: [OWASP-ASI06]
#   attributes: [duplicate]
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-411", "reason": "duplicate"} if {
	some index, candidate in releasing
	not candidate.queue.duplicate == false
}

# METADATA
# title: Protected keys are let go by those who may write them
# description: >-
#   A record under a key that could be taken for a rule of the system is released by the roles in the settings.
# custom:
#   rule_id: MEM-W-412
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM01]
#   attributes: [key, findings]
#   settings: [protected_keys]
deny contains {"index": index, "rule_id": "MEM-W-412", "reason": "protected_key"} if {
	some index, candidate in releasing
	candidate.key > ""
	candidate.key < []

	# portable: a key in a policy document is ASCII; any other stands there as a digest.
	strings.any_prefix_match(lower(candidate.key), settings.protected_keys.prefixes)
	not may_write_protected
}

deny contains {"index": index, "rule_id": "MEM-W-412", "reason": "protected_key"} if {
	some index, _ in releasing
	some finding in review.found_in[index]
	finding.type == "key.protected"
	not may_write_protected
}

may_write_protected if {
	some role in review.roles_of_caller
	settings.protected_keys.roles[role]
}

# METADATA
# description: >-
#   What a released record is given: never more trust than it would get today, than it got when it was
#   written, and than the settings leave to a record that was in doubt; and no longer a life.
released[index] := {"trust_level": level, "retention": kept.value, "ttl_days": days} if {
	some index, candidate in releasing
	bounds := settings.review.released
	rank := min([rank_today(candidate), candidate.queue.trust_rank, settings.trust_ranks[bounds.trust_max]])
	levels := {1: "low", 2: "medium", 3: "high"}
	level := levels[rank]
	kept := settings.classes[candidate.memory_class].retention
	days := min([kept.ttl_days, bounds.ttl_days_max])
}

# The trust that a write of the same record is given; a test compares the two.
rank_today(candidate) := min([source_rank, proof_rank, lineage_rank]) if {
	ranks := settings.trust_ranks
	source_rank := ranks[settings.sources[candidate.source].trust_max]
	proof := {true: ranks.high, false: ranks[settings.unproven_trust_max]}
	proof_rank := proof[candidate.provenance_known]
	unbounded := {null: ranks.high, 1: ranks.low, 2: ranks.medium, 3: ranks.high}
	lineage_rank := unbounded[candidate.lineage.min_trust_rank]
}
