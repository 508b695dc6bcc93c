# Which records a query considers at all: what walls and selectors keep out is neither counted nor named.
# Every rule stands twice, as a clause of the plan for the store and as an exclusion, by which each record that is
# about to be returned is judged again.
package memory.read

import future.keywords.not
import rego.v1

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
		{"attribute": "subject", "operator": "eq", "value": input.caller.subject},
	],
	"classes": null,
	"passed": "subject_match",
} if {
	not inspecting
}

clauses contains {
	"role": "wall",
	"rule_id": "MEM-R-002",
	"reason": "subject_wall",
	"any_of": [
		{"attribute": "subject", "operator": "is_null", "value": null},
		{"attribute": "subject", "operator": "eq", "value": input.query.subject},
	],
	"classes": null,
	"passed": "subject_match",
} if {
	input.query.subject != null
	inspecting
}

excluded contains {"index": index, "rule_id": "MEM-R-002", "reason": "subject_wall"} if {
	not inspecting
	subjects := [null, input.caller.subject]
	some index, candidate in input.candidates
	not candidate.subject in subjects
}

excluded contains {"index": index, "rule_id": "MEM-R-002", "reason": "subject_wall"} if {
	input.query.subject != null
	inspecting
	subjects := [null, input.query.subject]
	some index, candidate in input.candidates
	not candidate.subject in subjects
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
