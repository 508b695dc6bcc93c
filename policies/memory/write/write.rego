# METADATA
# title: Memory write policy
# description: >-
#   Decides on each record that a caller wants to keep, or on the subject whose records it wants removed. What
#   is kept gets its trust and its retention here; what a writer claims of either counts for nothing.
package memory.write

import data.memory.settings

import future.keywords.not
import rego.v1

# METADATA
# title: The decision of a write
# description: The one document that is asked for. Always defined; only an index in `allowed` may be carried out.
# entrypoint: true
decision := {
	"allowed": allowed,
	"deny": deny,
	"quarantine": quarantine,
	"obligations": obligations,
	"assign": assignments,
	"policy": {"package": "memory.write", "version": version},
}

default version := "unknown"

version := settings.version

default allowed := []

# INVARIANT: an allow list and a deny set together, so that what nothing permits is refused.
allowed := [index | some index, _ in input.candidates; not denied[index]] if permitted

denied[denial.index] := true if some denial in deny

permitted if {
	input.operation in {"write", "delete"}
	input.candidates >= []
	input.candidates < {}
}

# --- denials -----------------------------------------------------------------------------------------------

# METADATA
# title: A record stays in the tenant of its writer
# description: >-
#   The tenant of a candidate is the tenant of the caller, byte for byte.
# custom:
#   rule_id: MEM-W-101
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI03, OWASP-LLM02]
#   attributes: [tenant_id]
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-101", "reason": "tenant_mismatch"} if {
	some index, candidate in input.candidates
	not candidate.tenant_id == input.caller.tenant_id
}

# METADATA
# title: Somebody writes
# description: >-
#   A write, and a removal, name the principal who asks for it.
# custom:
#   rule_id: MEM-W-102
#   severity: high
#   scope: query
#   controls: [OWASP-ASI03, EU-AI-ACT-12]
#   attributes: []
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-102", "reason": "principal_missing"} if {
	not input.caller.principal_id > ""
	some index, _ in input.candidates
}

# METADATA
# title: Only registered sources
# description: >-
#   A record comes from a source that the settings name; each has a bound to the trust it can reach.
# custom:
#   rule_id: MEM-W-103
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM04]
#   attributes: [source]
#   settings: [sources]
deny contains {"index": index, "rule_id": "MEM-W-103", "reason": "source_not_registered"} if {
	input.operation == "write"
	sources := settings.sources
	some index, candidate in input.candidates
	not sources[candidate.source]
}

# METADATA
# title: What was recalled is not written back
# description: >-
#   A recall hit is a view for one query. Written back it would feed on itself and pass for new evidence. A
#   source that the settings give no trust at all cannot write.
# custom:
#   rule_id: MEM-W-104
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06]
#   attributes: [source]
#   settings: [sources]
deny contains {"index": index, "rule_id": "MEM-W-104", "reason": "recall_write_back"} if {
	input.operation == "write"
	sources := settings.sources
	some index, candidate in input.candidates
	sources[candidate.source].trust_max == "none"
}

# METADATA
# title: Only known memory classes
# description: >-
#   A record belongs to one of the classes that the settings name.
# custom:
#   rule_id: MEM-W-105
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06]
#   attributes: [memory_class]
#   settings: [classes]
deny contains {"index": index, "rule_id": "MEM-W-105", "reason": "class_unknown"} if {
	input.operation == "write"
	classes := settings.classes
	some index, candidate in input.candidates
	not classes[candidate.memory_class]
}

# METADATA
# title: Class, kind and source fit together
# description: >-
#   The settings say which sources may write which kinds of record into a class; nothing else is written.
# custom:
#   rule_id: MEM-W-106
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM04]
#   attributes: [memory_class, kind, source]
#   settings: [permitted]
deny contains {"index": index, "rule_id": "MEM-W-106", "reason": "combination_not_permitted"} if {
	input.operation == "write"
	combinations := settings.permitted
	some index, candidate in input.candidates
	not combinations[candidate.memory_class][candidate.kind][candidate.source]
}

# METADATA
# title: Durable records say where they come from
# description: >-
#   A record of a durable class names its provenance, and not as unknown.
# custom:
#   rule_id: MEM-W-107
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM04, ISO-42001-DATA-PROVENANCE]
#   attributes: [memory_class, provenance_known]
#   settings: [classes]
deny contains {"index": index, "rule_id": "MEM-W-107", "reason": "provenance_missing"} if {
	input.operation == "write"
	classes := settings.classes
	some index, candidate in input.candidates
	not candidate.provenance_known == true
	not classes[candidate.memory_class].durable == false
}

# METADATA
# title: Sure enough for its class
# description: >-
#   A record is at least as certain as its class demands.
# custom:
#   rule_id: MEM-W-108
#   severity: medium
#   scope: candidate
#   controls: [OWASP-ASI06]
#   attributes: [memory_class, confidence_millionths]
#   settings: [classes]
deny contains {"index": index, "rule_id": "MEM-W-108", "reason": "confidence_below_floor"} if {
	input.operation == "write"
	classes := settings.classes
	some index, candidate in input.candidates
	floor := classes[candidate.memory_class].confidence_floor_millionths
	not candidate.confidence_millionths >= floor
}

# METADATA
# title: Lower trust never replaces higher
# description: >-
#   A record that replaces another is given at least the trust of that other.
# custom:
#   rule_id: MEM-W-109
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM04]
#   attributes: [source, provenance_known, lineage, replaces]
#   settings: [sources]
deny contains {"index": index, "rule_id": "MEM-W-109", "reason": "lower_trust_replaces_higher"} if {
	input.operation == "write"
	ranks := trust_ranks
	some index, candidate in input.candidates
	not candidate.replaces == null
	not ranks[index] >= candidate.replaces.trust_rank
}

# METADATA
# title: Protected keys
# description: >-
#   Keys that could be taken for rules of the system are written by the roles in the settings only, however
#   the key is capitalised.
# custom:
#   rule_id: MEM-W-110
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM01]
#   attributes: [key]
#   settings: [protected_keys]
deny contains {"index": index, "rule_id": "MEM-W-110", "reason": "protected_key"} if {
	input.operation == "write"
	protected := settings.protected_keys
	some index, candidate in input.candidates
	candidate.key != null
	some prefix in protected.prefixes
	startswith(lower(candidate.key), prefix)
	not may_write_protected
}

may_write_protected if {
	some role in input.caller.roles
	settings.protected_keys.roles[role]
}

# METADATA
# title: Not too large
# description: >-
#   A record is at most as large as the settings allow.
# custom:
#   rule_id: MEM-W-111
#   severity: medium
#   scope: candidate
#   controls: [OWASP-ASI06]
#   attributes: [size_bytes]
#   settings: [limits]
deny contains {"index": index, "rule_id": "MEM-W-111", "reason": "too_large"} if {
	input.operation == "write"
	largest := settings.limits.size_bytes_max
	some index, candidate in input.candidates
	not candidate.size_bytes <= largest
}

# METADATA
# title: No secret is kept for long
# description: >-
#   A password, key or token never enters a durable class; nor, in any class, a field from which it cannot
#   be redacted.
# custom:
#   rule_id: MEM-W-112
#   severity: critical
#   scope: candidate
#   controls: [OWASP-LLM02, GDPR-5-1-C]
#   attributes: [memory_class, findings]
#   settings: [classes, redactable_fields]
deny contains {"index": index, "rule_id": "MEM-W-112", "reason": "secret_in_durable_class"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	startswith(finding.type, "secret.")
	not settings.classes[candidate.memory_class].durable == false
}

deny contains {"index": index, "rule_id": "MEM-W-112", "reason": "secret_in_durable_class"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	startswith(finding.type, "secret.")
	not settings.redactable_fields[finding.field]
}

# METADATA
# title: Nobody unknown writes what lasts
# description: >-
#   An anonymous caller writes nothing into a durable class.
# custom:
#   rule_id: MEM-W-113
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI03, OWASP-ASI06]
#   attributes: [memory_class]
#   settings: [classes]
deny contains {"index": index, "rule_id": "MEM-W-113", "reason": "anonymous_durable_write"} if {
	input.operation == "write"
	not input.caller.anonymous == false
	some index, candidate in input.candidates
	not settings.classes[candidate.memory_class].durable == false
}

# METADATA
# title: What a conversation says of a user goes through the curator
# description: >-
#   Preferences that a conversation or the agent itself is the source of enter a durable class only from a
#   caller with the role of curator.
# custom:
#   rule_id: MEM-W-114
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06, GDPR-5-1-C]
#   attributes: [memory_class, kind, source]
#   settings: [conversation, curator_roles, classes]
deny contains {"index": index, "rule_id": "MEM-W-114", "reason": "curator_required"} if {
	input.operation == "write"
	conversation := settings.conversation
	some index, candidate in input.candidates
	conversation.kinds[candidate.kind]
	conversation.sources[candidate.source]
	not settings.classes[candidate.memory_class].durable == false
	not caller_is_curator
}

caller_is_curator if {
	some role in input.caller.roles
	settings.curator_roles[role]
}

# METADATA
# title: What a record was derived from is known
# description: >-
#   Every record that a candidate says it was derived from is there; its trust bounds the candidate's.
# custom:
#   rule_id: MEM-W-115
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM04, ISO-42001-DATA-PROVENANCE]
#   attributes: [lineage]
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-115", "reason": "lineage_unknown"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	not candidate.lineage.known == true
}

# METADATA
# title: A record is about its writer's own subject
# description: >-
#   A candidate is about nobody in particular or about the subject of the caller; a curator or an operator
#   may write about others. It is never derived from records about somebody else.
# custom:
#   rule_id: MEM-W-116
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI03, OWASP-LLM02, GDPR-5-1-C]
#   attributes: [subject, lineage]
#   settings: [curator_roles, operator_roles]
deny contains {"index": index, "rule_id": "MEM-W-116", "reason": "subject_mismatch"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	not candidate.subject in [null, input.caller.subject]
	not caller_is_curator
	not caller_is_operator
}

deny contains {"index": index, "rule_id": "MEM-W-116", "reason": "subject_mismatch"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	not candidate.lineage.subjects_match == true
}

caller_is_operator if {
	some role in input.caller.roles
	settings.operator_roles[role]
}

# METADATA
# title: What was forgotten stays forgotten
# description: >-
#   Content that was removed at a person's request is not learnt again, unless that person or a trusted
#   profile says it anew.
# custom:
#   rule_id: MEM-W-117
#   severity: high
#   scope: candidate
#   controls: [GDPR-17]
#   attributes: [tombstoned, source]
#   settings: [relearn_sources]
deny contains {"index": index, "rule_id": "MEM-W-117", "reason": "forgotten_content"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	not candidate.tombstoned == false
	not settings.relearn_sources[candidate.source]
}

# METADATA
# title: Only known ways of revising
# description: >-
#   A candidate is appended, or replaces what stood under its key.
# custom:
#   rule_id: MEM-W-118
#   severity: medium
#   scope: candidate
#   controls: [OWASP-ASI06]
#   attributes: [revision_mode]
#   settings: [revision_modes]
deny contains {"index": index, "rule_id": "MEM-W-118", "reason": "revision_mode_unknown"} if {
	input.operation == "write"
	modes := settings.revision_modes
	some index, candidate in input.candidates
	not modes[candidate.revision_mode]
}

# METADATA
# title: Only known ways of writing
# description: >-
#   A change of memory is a write or a removal. Anything else is refused.
# custom:
#   rule_id: MEM-W-119
#   severity: medium
#   scope: query
#   controls: [OWASP-ASI06]
#   attributes: []
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-119", "reason": "operation_unknown"} if {
	not input.operation in {"write", "delete"}
	some index, _ in input.candidates
}

# METADATA
# title: Who may have records removed
# description: >-
#   A known caller removes the records of its own subject; those of another, only with a role that the
#   settings name.
# custom:
#   rule_id: MEM-W-120
#   severity: critical
#   scope: candidate
#   controls: [GDPR-17, OWASP-ASI03]
#   attributes: [subject]
#   settings: [erasure_roles]
deny contains {"index": index, "rule_id": "MEM-W-120", "reason": "erasure_not_permitted"} if {
	input.operation == "delete"
	some index, candidate in input.candidates
	not erasure_permitted(candidate)
}

erasure_permitted(candidate) if {
	candidate.subject == input.caller.subject
	input.caller.anonymous == false
}

erasure_permitted(candidate) if {
	candidate.subject > ""
	some role in input.caller.roles
	settings.erasure_roles[role]
}

# METADATA
# title: A candidate is well formed
# description: >-
#   What the other rules rely on is there and of the right type. Whatever is missing or strange is refused.
# custom:
#   rule_id: MEM-W-121
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06]
#   attributes: []
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-121", "reason": "candidate_malformed"} if {
	not caller_well_formed
	some index, _ in input.candidates
}

deny contains {"index": index, "rule_id": "MEM-W-121", "reason": "candidate_malformed"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	not well_formed(candidate)
}

deny contains {"index": index, "rule_id": "MEM-W-121", "reason": "candidate_malformed"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	not finding.type > ""
}

deny contains {"index": index, "rule_id": "MEM-W-121", "reason": "candidate_malformed"} if {
	input.operation == "delete"
	some index, candidate in input.candidates
	not candidate.subject < []
}

# Rego orders values by type, null < boolean < number < string < array < object, so a text that is not empty is
# `> ""` and `< []`, and a list is `>= []` and `< {}`. A missing value is none of them.
caller_well_formed if {
	input.caller.tenant_id > ""
	input.caller.tenant_id < []
	input.caller.principal_id < []
	input.caller.subject > ""
	input.caller.subject < []
	input.caller.roles >= []
	input.caller.roles < {}
	input.caller.anonymous in {true, false}
}

well_formed(candidate) if {
	candidate.subject < []
	candidate.key < []
	candidate.provenance_known in {true, false}
	candidate.confidence_millionths >= 0
	candidate.confidence_millionths <= 1000000
	candidate.size_bytes >= 0
	candidate.findings >= []
	candidate.findings < {}
	candidate.lineage.min_trust_rank in {null, 1, 2, 3}
	candidate.replaces in [null, candidate.replaces]
	candidate.tombstoned in {true, false}
}

# --- quarantine and redaction ------------------------------------------------------------------------------

# METADATA
# title: Text that reads like an instruction to the agent is held back
# description: >-
#   A record with such text is kept, but not read until somebody other than its writer releases it.
# custom:
#   rule_id: MEM-W-201
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM01, OWASP-LLM04]
#   attributes: [findings]
#   settings: []
quarantine contains {"index": index, "rule_id": "MEM-W-201", "reason": "instruction_like"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	startswith(finding.type, "instruction.")
}

# METADATA
# title: Text that would change rights is held back
# description: >-
#   A record that reads like a grant of rights or a lifted approval is kept, but not read until it is
#   released.
# custom:
#   rule_id: MEM-W-202
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI03, OWASP-ASI06]
#   attributes: [findings]
#   settings: []
quarantine contains {"index": index, "rule_id": "MEM-W-202", "reason": "rights_change"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	startswith(finding.type, "rights.")
}

# METADATA
# title: Text that would carry data out is held back
# description: >-
#   A record that reads like a request to send data elsewhere is kept, but not read until it is released.
# custom:
#   rule_id: MEM-W-203
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM02]
#   attributes: [findings]
#   settings: []
quarantine contains {"index": index, "rule_id": "MEM-W-203", "reason": "exfiltration"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	startswith(finding.type, "exfiltration.")
}

# METADATA
# title: Secrets are taken out of what is kept for a short while
# description: >-
#   A password, key or token in a record of a class that is not durable is replaced before the record is kept.
# custom:
#   rule_id: MEM-W-301
#   severity: high
#   scope: candidate
#   controls: [OWASP-LLM02, GDPR-5-1-C]
#   attributes: [findings]
#   settings: [classes]
obligations contains {"index": index, "type": "redact", "rule_id": "MEM-W-301", "findings": types} if {
	input.operation == "write"
	some index, candidate in input.candidates
	candidate.findings != []
	types := [finding.type | some finding in candidate.findings; startswith(finding.type, "secret.")]
	types != []
}

# --- what a kept record is given ---------------------------------------------------------------------------

# METADATA
# description: >-
#   Trust and retention for each candidate, in the order of the candidates. What is refused anyway may have
#   none of its own, as a removal has none, and then stands there with the least of both.
assignments := [object.get(assigned, index, least) | some index, _ in input.candidates]

least := {"trust_level": "low", "retention": "short_term", "ttl_days": 1}

assigned[index] := {"trust_level": level, "retention": kept.value, "ttl_days": kept.ttl_days} if {
	classes := settings.classes
	levels := ["none", "low", "medium", "high"]
	some index, rank in trust_ranks
	rank > 0
	level := levels[rank]
	kept := classes[input.candidates[index].memory_class].retention
}

# METADATA
# description: >-
#   Rank of the trust that each candidate is given: the least of what its source can reach, what unproven
#   provenance can reach, and the trust of whatever it was derived from.
trust_ranks[index] := min([ranks[sources[candidate.source].trust_max], proof[candidate.provenance_known]]) if {
	sources := settings.sources
	ranks := settings.trust_ranks
	proof := {true: ranks.high, false: ranks[settings.unproven_trust_max]}
	some index, candidate in input.candidates
	candidate.lineage.min_trust_rank == null
}

trust_ranks[index] := min([ranks[sources[candidate.source].trust_max], proof[candidate.provenance_known], lineage_rank]) if {
	sources := settings.sources
	ranks := settings.trust_ranks
	proof := {true: ranks.high, false: ranks[settings.unproven_trust_max]}
	some index, candidate in input.candidates
	lineage_rank := candidate.lineage.min_trust_rank
	lineage_rank != null
}
