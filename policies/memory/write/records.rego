# What a record must be: class, kind, source, provenance, confidence, lineage.
package memory.write

import data.memory.settings

import future.keywords.not
import rego.v1

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
	source := sources[candidate.source]
	source.trust_max == "none"
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
	not object.get(combinations, [candidate.memory_class, candidate.kind, candidate.source], false)
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
	class := classes[candidate.memory_class]
	not candidate.confidence_millionths >= class.confidence_floor_millionths
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
# title: What a record was derived from is known
# description: >-
#   Every record that a candidate says it was derived from is there to be read and has not expired; its trust
#   bounds the candidate's.
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
	input.operation == "delete"
	some index, candidate in input.candidates
	not candidate.subject < []
}

deny contains {"index": index, "rule_id": "MEM-W-121", "reason": "candidate_malformed"} if {
	some index, candidate in input.candidates
	said := candidate.repeats
	not said in {true, false}
}

# Rego orders values by type, null < boolean < number < string < array < object, so a text is `>= ""` and `< []`,
# and a list is `>= []` and `< {}`. A missing value is none of them. `every` holds over lists and objects only.
caller_well_formed if {
	input.now_ns > 0
	input.now_ns < ""
	input.caller.tenant_id > ""
	input.caller.tenant_id < []
	input.caller.principal_id < []
	input.caller.subject > ""
	input.caller.subject < []
	input.caller.anonymous in {true, false}
	input.caller.roles < {}
	every role in input.caller.roles {
		role >= ""
		role < []
	}
}

# One body for a whole candidate: the embedded engine takes its time for each body, not for each comparison. What
# is looked up in the settings is refused by the rule that looks it up.
well_formed(candidate) if {
	every word in [candidate.provenance, candidate.content_digest, candidate.language] {
		word >= ""
		word < []
	}
	every word in [candidate.subject, candidate.key] {
		word < []
		[word | word < ""; word != null] == []
	}
	candidate.provenance_known in {true, false}
	candidate.tombstoned in {true, false}
	candidate.confidence_millionths >= 0
	candidate.confidence_millionths <= 1000000
	candidate.size_bytes >= 0
	candidate.size_bytes < ""
	candidate.lineage.min_trust_rank in {null, 1, 2, 3}
	candidate.lineage.count >= 0
	candidate.lineage.count < ""
	candidate.findings < {}
	every finding in candidate.findings {
		finding.type > ""
		finding.type < []
		finding.field > ""
		finding.field < []
	}
	every head in [candidate.replaces] {
		[head | head != null; not head_well_formed(head)] == []
	}
}

head_well_formed(head) if {
	head.trust_rank in {1, 2, 3}
	head.revision > 0
	head.revision < ""
	every word in [head.record_id, head.status] {
		word >= ""
		word < []
	}
}
