# METADATA
# title: Review policy
# description: >-
#   Decides who may take a record out of quarantine, and what a record that is let go is given. It is a part of
#   the write policy, which asks it about releases and rejections only; an ordinary write pays nothing for it.
package memory.review

import data.memory.settings

import future.keywords.not
import rego.v1

permitted if {
	input.operation in {"release", "reject"}
	input.candidates >= []
	input.candidates < {}
	settings.review.roles
	settings.review.four_eyes[input.operation]
	settings.review.reason_chars_max
}

# Whoever may not review is told that and nothing else: no other rule looks at the record, so that an answer
# tells nobody which records wait in quarantine.
under_review[index] := candidate if {
	input.operation in {"release", "reject"}
	caller_is_reviewer
	some index, candidate in input.candidates
}

waiting[index] := candidate if {
	some index, candidate in under_review
	candidate.queue.status == "quarantined"
}

releasing[index] := candidate if {
	input.operation == "release"
	some index, candidate in waiting
}

# What is no list is looked at by the rule about the form alone: the embedded engine fails on it.
found_in[index] := candidate.findings if {
	some index, candidate in waiting
	candidate.findings >= []
	candidate.findings < {}
}

caller_is_reviewer if {
	input.caller.anonymous == false
	some role in input.caller.roles
	settings.review.roles[role]
}

# --- who reviews, and why ----------------------------------------------------------------------------------

# METADATA
# title: Quarantine is opened by reviewers
# description: >-
#   A record is released or rejected by a known caller with a role that the settings name, and by nobody else.
# custom:
#   rule_id: MEM-W-401
#   severity: critical
#   scope: query
#   controls: [OWASP-ASI03, OWASP-ASI06, EU-AI-ACT-14]
#   attributes: []
#   settings: [review]
deny contains {"index": index, "rule_id": "MEM-W-401", "reason": "reviewer_required"} if {
	input.operation in {"release", "reject"}
	not caller_is_reviewer
	some index, _ in input.candidates
}

# METADATA
# title: Only what is in quarantine is reviewed
# description: >-
#   A record that is not there, is active already, or was superseded is neither released nor rejected.
# custom:
#   rule_id: MEM-W-402
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06]
#   attributes: [status]
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-402", "reason": "not_in_quarantine"} if {
	some index, _ in under_review
	not waiting[index]
}

# METADATA
# title: Four eyes
# description: >-
#   Who wrote a record, as principal or as agent, does not release it, nor does whom it is about. The settings
#   say for which of the two steps each of them counts. Where it is not known who wrote a record, nobody
#   releases it.
# custom:
#   rule_id: MEM-W-403
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI03, OWASP-ASI06, EU-AI-ACT-14]
#   attributes: [written_by, subject]
#   settings: [review]
deny contains {"index": index, "rule_id": "MEM-W-403", "reason": "four_eyes"} if {
	some index, candidate in waiting
	settings.review.four_eyes[input.operation].principal
	candidate.queue.reviewer.principal in written_by(candidate)
}

deny contains {"index": index, "rule_id": "MEM-W-403", "reason": "four_eyes"} if {
	some index, candidate in waiting
	settings.review.four_eyes[input.operation].agent
	candidate.queue.reviewer.agent in written_by(candidate)
}

deny contains {"index": index, "rule_id": "MEM-W-403", "reason": "four_eyes"} if {
	some index, candidate in waiting
	settings.review.four_eyes[input.operation].subject
	candidate.subject == input.caller.subject
}

deny contains {"index": index, "rule_id": "MEM-W-403", "reason": "writer_unknown"} if {
	some index, candidate in waiting
	settings.review.four_eyes[input.operation].principal
	not candidate.queue.written_by.principal > ""
}

# Without null: a caller without an agent is not the same as another one without.
written_by(candidate) := {name | some name in candidate.queue.written_by; name != null}

# METADATA
# title: A review says why
# description: >-
#   A release and a rejection carry a reason: some text, no longer than the settings allow, and with no
#   password, key or token in it.
# custom:
#   rule_id: MEM-W-404
#   severity: medium
#   scope: query
#   controls: [EU-AI-ACT-12, EU-AI-ACT-14]
#   attributes: []
#   settings: [review]
deny contains {"index": index, "rule_id": "MEM-W-404", "reason": "reason_missing"} if {
	some index, _ in under_review
	not input.review.reason_chars > 0
}

deny contains {"index": index, "rule_id": "MEM-W-404", "reason": "reason_too_long"} if {
	some index, _ in under_review
	not input.review.reason_chars <= settings.review.reason_chars_max
}

deny contains {"index": index, "rule_id": "MEM-W-404", "reason": "reason_holds_secret"} if {
	some index, _ in under_review
	not reason_without_secret
}

reason_without_secret if {
	input.review.reason_findings >= []
	input.review.reason_findings < {}
	every type in input.review.reason_findings {
		not startswith(type, "secret.")
	}
}

# --- what may be let go ------------------------------------------------------------------------------------

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
#   Class, kind and source still fit together, the source still gives some trust, and provenance, certainty
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
	some finding in found_in[index]
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
#   settings: [sources, review]
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
	some finding in found_in[index]
	finding.type == "key.protected"
	not may_write_protected
}

may_write_protected if {
	some role in input.caller.roles
	settings.protected_keys.roles[role]
}

# METADATA
# title: A review is well formed
# description: >-
#   What the other rules rely on is there and of the right type. Whatever is missing or strange is refused.
# custom:
#   rule_id: MEM-W-413
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06]
#   attributes: []
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-413", "reason": "review_malformed"} if {
	some index, candidate in waiting
	not review_well_formed(candidate)
}

deny contains {"index": index, "rule_id": "MEM-W-413", "reason": "review_malformed"} if {
	some index, findings in found_in
	some finding in findings
	not finding.type > ""
}

# How values of different types are ordered is told beside `well_formed`.
review_well_formed(candidate) if {
	is_word_or_null(candidate.subject)
	is_word_or_null(candidate.key)
	candidate.findings >= []
	candidate.findings < {}
	candidate.replaces in [null, candidate.replaces]
	candidate.queue.reviewer.principal > ""
	candidate.queue.reviewer.principal < []
	is_word_or_null(candidate.queue.reviewer.agent)
	is_word_or_null(candidate.queue.written_by.principal)
	is_word_or_null(candidate.queue.written_by.agent)
	input.review.reason > ""
	input.review.reason < []
	input.review.reason_findings >= []
	input.review.reason_findings < {}
}

is_word_or_null(value) if value == null

is_word_or_null(value) if {
	value >= ""
	value < []
}

# --- what is decided beside ----------------------------------------------------------------------------------

# METADATA
# title: Rejected content stays out
# description: >-
#   Where a detector fires on the content itself, its rejection leaves a tombstone: the same content is not
#   taken in again, except from a source that may bring back what was forgotten. Where it fired on something
#   beside the content, nobody else is kept from saying the same.
# custom:
#   rule_id: MEM-W-421
#   severity: medium
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM04]
#   attributes: [findings]
#   settings: []
obligations contains {"index": index, "type": "tombstone", "rule_id": "MEM-W-421", "findings": types} if {
	input.operation == "reject"
	some index, findings in found_in
	types := [finding.type | some finding in findings; finding.field == "content"]
	types != []
}

# METADATA
# description: >-
#   What a released record is given: never more trust than it would get today, than it got when it was
#   written, and than the settings leave to a record that was in doubt; and no longer a life.
released[index] := {"trust_level": level, "retention": kept.value, "ttl_days": days} if {
	some index, candidate in releasing
	review := settings.review.released
	rank := min([rank_today(candidate), candidate.queue.trust_rank, settings.trust_ranks[review.trust_max]])
	levels := {1: "low", 2: "medium", 3: "high"}
	level := levels[rank]
	kept := settings.classes[candidate.memory_class].retention
	days := min([kept.ttl_days, review.ttl_days_max])
}

# The trust that a write of the same record is given; a test compares the two.
rank_today(candidate) := min([source_rank, proof_rank, lineage_rank]) if {
	source_rank := settings.trust_ranks[settings.sources[candidate.source].trust_max]
	proof := {true: 3, false: settings.trust_ranks[settings.unproven_trust_max]}
	proof_rank := proof[candidate.provenance_known]
	unbounded := {null: 3, 1: 1, 2: 2, 3: 3}
	lineage_rank := unbounded[candidate.lineage.min_trust_rank]
}
