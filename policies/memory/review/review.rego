# METADATA
# title: Review policy
# description: >-
#   Decides who may put a record into quarantine and take it out again. It is a part of the write policy, which
#   asks it about the steps of a review only; an ordinary write pays nothing for it.
# scope: subpackages
# schemas:
#   - input: schema["policy_write_input.schema"]
#   - data.memory.settings: schema["policy_settings.schema"]
package memory.review

import data.memory.settings
import data.memory.write

import future.keywords.not
import rego.v1

# Each step, and the status of the records that it is taken with.
due := {"release": "quarantined", "reject": "quarantined", "quarantine": "active"}

permitted if {
	due[input.operation]
	input.candidates >= []
	input.candidates < {}
	settings.review.roles
	settings.review.four_eyes[input.operation]
	settings.review.reason_chars_max
}

# Whoever may not review is told that and nothing else: no other rule looks at the record, so that an answer
# tells nobody which records wait in quarantine.
under_review[index] := candidate if {
	due[input.operation]
	caller_is_reviewer
	some index, candidate in input.candidates
}

waiting[index] := candidate if {
	status := due[input.operation]
	some index, candidate in under_review
	candidate.queue.status == status
}

# What is no list is looked at by the rule about the form alone: the embedded engine fails on it.
found_in[index] := candidate.findings if {
	some index, candidate in waiting
	candidate.findings >= []
	candidate.findings < {}
}

caller_is_reviewer if {
	input.caller.anonymous == false
	some role in roles_of_caller
	settings.review.roles[role]
}

# The embedded engine begins a loop before it looks at what stands above it, and fails on what is no list.
roles_of_caller := input.caller.roles if {
	input.caller.roles >= []
	input.caller.roles < {}
}

# --- who reviews, and why ----------------------------------------------------------------------------------

# METADATA
# title: Quarantine is opened by reviewers
# description: >-
#   A record is released, rejected or put into quarantine by a known caller with a role that the settings name,
#   and by nobody else.
# custom:
#   rule_id: MEM-W-401
#   severity: critical
#   scope: query
#   controls: [OWASP-ASI03, OWASP-ASI06, EU-AI-ACT-14]
#   attributes: []
#   settings: [review]
deny contains {"index": index, "rule_id": "MEM-W-401", "reason": "reviewer_required"} if {
	due[input.operation]
	not caller_is_reviewer
	some index, _ in input.candidates
}

# METADATA
# title: A step of a review is taken with what is due
# description: >-
#   A record that is not there, is active already, or was superseded is neither released nor rejected. Only an
#   active one is put into quarantine.
# custom:
#   rule_id: MEM-W-402
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06]
#   attributes: [status]
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-402", "reason": "not_in_quarantine"} if {
	due[input.operation] == "quarantined"
	some index, _ in under_review
	not waiting[index]
}

deny contains {"index": index, "rule_id": "MEM-W-402", "reason": "not_active"} if {
	due[input.operation] == "active"
	some index, _ in under_review
	not waiting[index]
}

# METADATA
# title: Four eyes
# description: >-
#   Who wrote a record, as principal or as agent, does not release it, nor does whom it is about. The settings
#   say for which of the steps each of them counts. Where it is not known who wrote a record, nobody releases
#   it.
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
#   Each step of a review carries a reason: some text, no longer than the settings allow, and with no password,
#   key or token in it.
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
	input.review.reason_findings < {}
	every type in input.review.reason_findings {
		not startswith(type, "secret.")
	}
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

# How values of different types are ordered is told in memory.write, which sees to what every candidate has.
review_well_formed(candidate) if {
	write.well_formed(candidate)
	every word in [
		candidate.memory_class,
		candidate.kind,
		candidate.source,
		candidate.revision_mode,
		candidate.queue.record_id,
	] {
		word >= ""
		word < []
	}
	every flag in [candidate.lineage.known, candidate.lineage.subjects_match, candidate.queue.duplicate] {
		flag in {true, false}
	}
	candidate.queue.trust_rank in {1, 2, 3}
	candidate.queue.created_ns > true
	candidate.queue.created_ns < ""
	candidate.queue.expires_ns < ""
	[instant | instant := candidate.queue.expires_ns; instant <= true; instant != null] == []
	candidate.queue.reviewer.principal > ""
	candidate.queue.reviewer.principal < []
	is_word_or_null(candidate.queue.reviewer.agent)
	is_word_or_null(candidate.queue.written_by.principal)
	is_word_or_null(candidate.queue.written_by.agent)
	input.review.reason > ""
	input.review.reason < []
	input.review.reason_findings < {}
	every type in input.review.reason_findings {
		type > ""
		type < []
	}
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
