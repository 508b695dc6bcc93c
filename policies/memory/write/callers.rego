# Who may write, and about whom.
package memory.write

import data.memory.settings

import future.keywords.not
import rego.v1

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
# title: Only known ways of writing
# description: >-
#   A change of memory is a write, a removal, or a step of a review: putting into quarantine, release and
#   rejection. Anything else is refused.
# custom:
#   rule_id: MEM-W-119
#   severity: medium
#   scope: query
#   controls: [OWASP-ASI06]
#   attributes: []
#   settings: []
deny contains {"index": index, "rule_id": "MEM-W-119", "reason": "operation_unknown"} if {
	not input.operation in {"write", "delete", "release", "reject", "quarantine"}
	some index, _ in input.candidates
}

# METADATA
# title: Who may have records removed
# description: >-
#   A known caller removes the records of its own subject; those of another, only with a role that the
#   settings name. A record about nobody in particular may go where it repeats another one, which stays.
# custom:
#   rule_id: MEM-W-120
#   severity: critical
#   scope: candidate
#   controls: [GDPR-17, OWASP-ASI03]
#   attributes: [subject, repeats]
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
	candidate.subject == null
	candidate.repeats == true
	input.caller.anonymous == false
}

erasure_permitted(candidate) if {
	candidate.subject > ""
	some role in input.caller.roles
	settings.erasure_roles[role]
}
