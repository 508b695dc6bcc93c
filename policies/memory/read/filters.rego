package memory.read

import data.memory.settings

import future.keywords.not
import rego.v1

# METADATA
# description: >-
#   Ids of exclusion rules that have no clause. A reviewer who adds such a rule adds its id here, with
#   `incomplete contains "..."`; matching records are then judged one by one, by the exclusions themselves.
incomplete contains rule_id if some rule_id in []

day_ns := 86400000000000

# --- walls -------------------------------------------------------------------------------------------------

# METADATA
# title: Tenant wall
# description: A query sees records of its own tenant only.
# custom:
#   rule_id: MEM-R-001
#   severity: critical
#   scope: record
#   controls: [OWASP-ASI03, OWASP-LLM02, GDPR-5-1-C]
#   attributes: [tenant_id]
#   settings: []
clauses contains {
	"role": "wall",
	"rule_id": "MEM-R-001",
	"reason": "tenant_wall",
	"any_of": [{"attribute": "tenant_id", "operator": "eq", "value": input.query.tenant_id}],
	"classes": null,
	"passed": "tenant_match",
} if {
	input.query.tenant_id != null
}

excluded contains {"index": index, "rule_id": "MEM-R-001", "reason": "tenant_wall"} if {
	input.query.tenant_id != null
	some index, candidate in input.candidates
	not candidate.tenant_id == input.query.tenant_id
}

# METADATA
# title: Subject wall
# description: >-
#   A query sees records about nobody in particular and records about its caller's own subject. An operator
#   who inspects sees everybody's, or those of the subject that the query names.
# custom:
#   rule_id: MEM-R-002
#   severity: critical
#   scope: record
#   controls: [OWASP-ASI03, OWASP-LLM02, GDPR-5-1-C]
#   attributes: [subject]
#   settings: [operator_roles, inspection_purpose]
clauses contains {
	"role": "wall",
	"rule_id": "MEM-R-002",
	"reason": "subject_wall",
	"any_of": [
		{"attribute": "subject", "operator": "is_null", "value": null},
		{"attribute": "subject", "operator": "eq", "value": visible_subject},
	],
	"classes": null,
	"passed": "subject_match",
}

excluded contains {"index": index, "rule_id": "MEM-R-002", "reason": "subject_wall"} if {
	subjects := [null, visible_subject]
	some index, candidate in input.candidates
	not candidate.subject in subjects
}

visible_subject := input.caller.subject if not inspecting

visible_subject := input.query.subject if {
	input.query.subject != null
	inspecting
}

# --- selectors ---------------------------------------------------------------------------------------------

# METADATA
# title: Only the kinds that the query names
# description: A query that names kinds of record considers those.
# custom:
#   rule_id: MEM-R-011
#   severity: low
#   scope: record
#   controls: [GDPR-5-1-C]
#   attributes: [kind]
#   settings: []
clauses contains {
	"role": "selector",
	"rule_id": "MEM-R-011",
	"reason": "kind_not_selected",
	"any_of": [{"attribute": "kind", "operator": "in", "value": input.query.kinds}],
	"classes": null,
	"passed": null,
} if {
	input.query.kinds != []
}

excluded contains {"index": index, "rule_id": "MEM-R-011", "reason": "kind_not_selected"} if {
	input.query.kinds != []
	some index, candidate in input.candidates
	not candidate.kind in input.query.kinds
}

# METADATA
# title: Only the sources that the query names
# description: A query that names sources considers records from those.
# custom:
#   rule_id: MEM-R-012
#   severity: low
#   scope: record
#   controls: [GDPR-5-1-C]
#   attributes: [source]
#   settings: []
clauses contains {
	"role": "selector",
	"rule_id": "MEM-R-012",
	"reason": "source_not_selected",
	"any_of": [{"attribute": "source", "operator": "in", "value": input.query.sources}],
	"classes": null,
	"passed": null,
} if {
	input.query.sources != []
}

excluded contains {"index": index, "rule_id": "MEM-R-012", "reason": "source_not_selected"} if {
	input.query.sources != []
	some index, candidate in input.candidates
	not candidate.source in input.query.sources
}

# METADATA
# title: Only the keys that the query names
# description: A query that names keys considers records with those.
# custom:
#   rule_id: MEM-R-013
#   severity: low
#   scope: record
#   controls: [GDPR-5-1-C]
#   attributes: [key]
#   settings: []
clauses contains {
	"role": "selector",
	"rule_id": "MEM-R-013",
	"reason": "key_not_selected",
	"any_of": [{"attribute": "key", "operator": "in", "value": input.query.keys}],
	"classes": null,
	"passed": null,
} if {
	input.query.keys != []
}

excluded contains {"index": index, "rule_id": "MEM-R-013", "reason": "key_not_selected"} if {
	input.query.keys != []
	some index, candidate in input.candidates
	not candidate.key in input.query.keys
}

# METADATA
# title: Only the records that the query names
# description: A query that names records by their ids considers those.
# custom:
#   rule_id: MEM-R-014
#   severity: low
#   scope: record
#   controls: [GDPR-5-1-C]
#   attributes: [record_id]
#   settings: []
clauses contains {
	"role": "selector",
	"rule_id": "MEM-R-014",
	"reason": "record_not_selected",
	"any_of": [{"attribute": "record_id", "operator": "in", "value": input.query.record_ids}],
	"classes": null,
	"passed": null,
} if {
	input.query.record_ids != []
}

excluded contains {"index": index, "rule_id": "MEM-R-014", "reason": "record_not_selected"} if {
	input.query.record_ids != []
	some index, candidate in input.candidates
	not candidate.record_id in input.query.record_ids
}

# METADATA
# title: Only the statuses that an inspection names
# description: An inspection that names statuses considers records with those.
# custom:
#   rule_id: MEM-R-015
#   severity: low
#   scope: record
#   controls: [GDPR-5-1-C]
#   attributes: [status]
#   settings: []
clauses contains {
	"role": "selector",
	"rule_id": "MEM-R-015",
	"reason": "status_not_selected",
	"any_of": [{"attribute": "status", "operator": "in", "value": input.query.statuses}],
	"classes": null,
	"passed": null,
} if {
	input.query.statuses != []
}

excluded contains {"index": index, "rule_id": "MEM-R-015", "reason": "status_not_selected"} if {
	input.query.statuses != []
	some index, candidate in input.candidates
	not candidate.status in input.query.statuses
}

# --- filters -----------------------------------------------------------------------------------------------

# METADATA
# title: Only the classes that the query allows
# description: A record of a memory class that the query does not allow stays out.
# custom:
#   rule_id: MEM-R-201
#   severity: high
#   scope: record
#   controls: [GDPR-5-1-B, GDPR-5-1-C]
#   attributes: [memory_class]
#   settings: []
clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-201",
	"reason": "class_not_allowed",
	"any_of": [{"attribute": "memory_class", "operator": "in", "value": input.query.allowed_classes}],
	"classes": null,
	"passed": "class_match",
} if {
	input.query.allowed_classes != null
}

excluded contains {"index": index, "rule_id": "MEM-R-201", "reason": "class_not_allowed"} if {
	input.query.allowed_classes != null
	some index, candidate in input.candidates
	not candidate.memory_class in input.query.allowed_classes
}

# METADATA
# title: Only active records
# description: What is quarantined, superseded or forgotten is not read.
# custom:
#   rule_id: MEM-R-202
#   severity: high
#   scope: record
#   controls: [OWASP-ASI06, OWASP-LLM04, GDPR-17]
#   attributes: [status]
#   settings: []
clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-202",
	"reason": "status_not_active",
	"any_of": [{"attribute": "status", "operator": "eq", "value": "active"}],
	"classes": null,
	"passed": null,
} if {
	input.operation != "inspect"
}

excluded contains {"index": index, "rule_id": "MEM-R-202", "reason": "status_not_active"} if {
	input.operation != "inspect"
	some index, candidate in input.candidates
	not candidate.status == "active"
}

# METADATA
# title: Nothing past its time
# description: A record is hidden from the very instant at which it expires.
# custom:
#   rule_id: MEM-R-203
#   severity: high
#   scope: record
#   controls: [GDPR-5-1-E]
#   attributes: [expires_ns]
#   settings: []
clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-203",
	"reason": "expired",
	"any_of": [
		{"attribute": "expires_ns", "operator": "is_null", "value": null},
		{"attribute": "expires_ns", "operator": "gt", "value": input.now_ns},
	],
	"classes": null,
	"passed": null,
} if {
	input.operation != "inspect"
}

excluded contains {"index": index, "rule_id": "MEM-R-203", "reason": "expired"} if {
	input.operation != "inspect"
	some index, candidate in input.candidates
	not candidate.expires_ns == null
	not candidate.expires_ns > input.now_ns
}

# An instant that is no number would otherwise be later than every number.
excluded contains {"index": index, "rule_id": "MEM-R-203", "reason": "expired"} if {
	some index, candidate in input.candidates
	not candidate.expires_ns < ""
}

# METADATA
# title: A least trust
# description: >-
#   A record is trusted at least as much as the query demands, and as its class demands; the higher counts.
#   Purposes of inspection and compliance review have no floor of their own. Low is no floor: no record has less.
# custom:
#   rule_id: MEM-R-204
#   severity: high
#   scope: record
#   controls: [OWASP-ASI06, OWASP-LLM04]
#   attributes: [trust_rank]
#   settings: [trust_floors, trust_ranks, purposes]
clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-204",
	"reason": "trust_below_minimum",
	"any_of": [{"attribute": "trust_rank", "operator": "gte", "value": input.query.trust_min_rank}],
	"classes": null,
	"passed": "trust_filter_passed",
} if {
	input.query.trust_min_rank != null
}

clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-204",
	"reason": "trust_below_minimum",
	"any_of": [{"attribute": "trust_rank", "operator": "gte", "value": rank}],
	"classes": classes,
	"passed": "trust_filter_passed",
} if {
	some rank, classes in trust_floors
	rank > input.query.trust_min_rank
}

excluded contains {"index": index, "rule_id": "MEM-R-204", "reason": "trust_below_minimum"} if {
	input.query.trust_min_rank != null
	some index, candidate in input.candidates
	not candidate.trust_rank >= input.query.trust_min_rank
}

excluded contains {"index": index, "rule_id": "MEM-R-204", "reason": "trust_below_minimum"} if {
	some rank, classes in trust_floors
	some index, candidate in input.candidates
	candidate.memory_class in classes
	not candidate.trust_rank >= rank
}

# A rank that is no number would otherwise be higher than every number.
excluded contains {"index": index, "rule_id": "MEM-R-204", "reason": "trust_below_minimum"} if {
	some index, candidate in input.candidates
	not candidate.trust_rank in {1, 2, 3}
}

trust_floors[rank] := classes if {
	input.operation != "inspect"
	settings.purposes[input.query.purpose].class_trust_floors
	some level, classes in settings.trust_floors
	rank := settings.trust_ranks[level]
	rank > 1
}

# METADATA
# title: A greatest age
# description: >-
#   A record is no older than the query asks for, and no older than its class may grow; the lower counts.
# custom:
#   rule_id: MEM-R-205
#   severity: medium
#   scope: record
#   controls: [GDPR-5-1-E]
#   attributes: [created_ns]
#   settings: [age_limits]
clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-205",
	"reason": "age_above_maximum",
	"any_of": [{"attribute": "created_ns", "operator": "gte", "value": input.now_ns - (input.query.max_age_days * day_ns)}],
	"classes": null,
	"passed": "age_filter_passed",
} if {
	input.operation != "inspect"
	input.query.max_age_days != null
}

clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-205",
	"reason": "age_above_maximum",
	"any_of": [{"attribute": "created_ns", "operator": "gte", "value": input.now_ns - (limit.days * day_ns)}],
	"classes": limit.classes,
	"passed": "age_filter_passed",
} if {
	input.operation != "inspect"
	input.query.max_age_days == null
	some limit in settings.age_limits
}

clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-205",
	"reason": "age_above_maximum",
	"any_of": [{"attribute": "created_ns", "operator": "gte", "value": input.now_ns - (limit.days * day_ns)}],
	"classes": limit.classes,
	"passed": "age_filter_passed",
} if {
	input.operation != "inspect"
	input.query.max_age_days != null
	some limit in settings.age_limits
	limit.days < input.query.max_age_days
}

excluded contains {"index": index, "rule_id": "MEM-R-205", "reason": "age_above_maximum"} if {
	input.operation != "inspect"
	input.query.max_age_days != null
	earliest_ns := input.now_ns - (input.query.max_age_days * day_ns)
	some index, candidate in input.candidates
	not candidate.created_ns >= earliest_ns
}

excluded contains {"index": index, "rule_id": "MEM-R-205", "reason": "age_above_maximum"} if {
	input.operation != "inspect"
	some limit in settings.age_limits
	earliest_ns := input.now_ns - (limit.days * day_ns)
	some index, candidate in input.candidates
	candidate.memory_class in limit.classes
	not candidate.created_ns >= earliest_ns
}

excluded contains {"index": index, "rule_id": "MEM-R-205", "reason": "age_above_maximum"} if {
	some index, candidate in input.candidates
	not candidate.created_ns < ""
}

# METADATA
# title: Known provenance
# description: >-
#   A durable record says where it came from; any record does, if the query demands it.
# custom:
#   rule_id: MEM-R-206
#   severity: high
#   scope: record
#   controls: [OWASP-ASI06, OWASP-LLM04, ISO-42001-DATA-PROVENANCE]
#   attributes: [provenance_known]
#   settings: [provenance_classes]
clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-206",
	"reason": "provenance_unknown",
	"any_of": [{"attribute": "provenance_known", "operator": "eq", "value": true}],
	"classes": provenance_classes,
	"passed": "provenance_present",
} if {
	input.operation != "inspect"
}

excluded contains {"index": index, "rule_id": "MEM-R-206", "reason": "provenance_unknown"} if {
	input.operation != "inspect"
	input.query.require_provenance
	some index, candidate in input.candidates
	not candidate.provenance_known == true
}

excluded contains {"index": index, "rule_id": "MEM-R-206", "reason": "provenance_unknown"} if {
	input.operation != "inspect"
	classes := settings.provenance_classes
	some index, candidate in input.candidates
	candidate.memory_class in classes
	not candidate.provenance_known == true
}

provenance_classes := null if input.query.require_provenance

provenance_classes := settings.provenance_classes if not input.query.require_provenance

# METADATA
# title: A summary never stands in for something better
# description: >-
#   A summary stays out while an active record of higher trust says something about the same key.
# custom:
#   rule_id: MEM-R-207
#   severity: medium
#   scope: record
#   controls: [OWASP-ASI06]
#   attributes: [kind, outranked]
#   settings: [summary_kinds]
clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-207",
	"reason": "summary_outranked",
	"any_of": [
		{"attribute": "outranked", "operator": "eq", "value": false},
		{"attribute": "kind", "operator": "not_in", "value": settings.summary_kinds},
	],
	"classes": null,
	"passed": null,
} if {
	input.operation != "inspect"
}

excluded contains {"index": index, "rule_id": "MEM-R-207", "reason": "summary_outranked"} if {
	input.operation != "inspect"
	summary_kinds := settings.summary_kinds
	some index, candidate in input.candidates
	not candidate.outranked == false
	candidate.kind in summary_kinds
}
