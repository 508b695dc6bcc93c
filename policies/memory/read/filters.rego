# Which of the considered records stay out, each with its reason, in the order of the ids. Every rule stands twice,
# as a clause of the plan for the store and as an exclusion, by which each record about to be returned is judged
# again. A reviewer who adds a rule writes both, or only the exclusion and its id into `incomplete`. That records
# have all their attributes, of the right type, is seen to by MEM-R-112.
package memory.read

import data.memory.settings

import future.keywords.not
import rego.v1

# METADATA
# description: >-
#   Ids of exclusion rules that have no clause. A reviewer who adds such a rule adds its id here, with
#   `incomplete contains "..."`; matching records are then judged one by one, by the exclusions themselves.
incomplete contains rule_id if some rule_id in without_clause

without_clause := []

day_ns := 86400000000000

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
	input.operation != "inspect"
	purpose.class_trust_floors
	ranks := settings.trust_ranks
	some level, classes in settings.trust_floors
	rank := ranks[level]
	rank > 1
	not rank <= input.query.trust_min_rank
}

excluded contains {"index": index, "rule_id": "MEM-R-204", "reason": "trust_below_minimum"} if {
	input.query.trust_min_rank != null
	some index, candidate in input.candidates
	not candidate.trust_rank >= input.query.trust_min_rank
}

excluded contains {"index": index, "rule_id": "MEM-R-204", "reason": "trust_below_minimum"} if {
	input.operation != "inspect"
	purpose.class_trust_floors
	ranks := settings.trust_ranks
	some level, classes in settings.trust_floors
	rank := ranks[level]
	some index, candidate in input.candidates
	candidate.memory_class in classes
	not candidate.trust_rank >= rank
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
	some limit in settings.age_limits

	# A query without an age is left out by this as well: no number is below null.
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
	"classes": null,
	"passed": "provenance_present",
} if {
	input.operation != "inspect"
	input.query.require_provenance == true
}

clauses contains {
	"role": "filter",
	"rule_id": "MEM-R-206",
	"reason": "provenance_unknown",
	"any_of": [{"attribute": "provenance_known", "operator": "eq", "value": true}],
	"classes": settings.provenance_classes,
	"passed": "provenance_present",
} if {
	input.operation != "inspect"
	input.query.require_provenance == false
}

excluded contains {"index": index, "rule_id": "MEM-R-206", "reason": "provenance_unknown"} if {
	input.operation != "inspect"
	input.query.require_provenance == true
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
