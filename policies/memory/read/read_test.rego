# METADATA
# description: Cases for the read policy. Each names what is changed in a permitted request and which rules answer.
package memory.read_test

import data.memory.read

import rego.v1

now_ns := 1790000000000000000

day_ns := 86400000000000

request := {
	"operation": "search",
	"now_ns": now_ns,
	"caller": {"tenant_id": "tenant-a", "principal_id": "user-1", "subject": "user-1", "roles": [], "anonymous": false},
	"query": {
		"tenant_id": "tenant-a",
		"principal_id": "user-1",
		"purpose": "answer_generation",
		"allowed_classes": ["short_term", "long_term", "profile"],
		"limit": 5,
		"trust_min_rank": null,
		"max_age_days": null,
		"require_provenance": false,
		"subject": null,
		"kinds": [],
		"sources": [],
		"keys": [],
		"record_ids": [],
		"statuses": [],
		"has_text": false,
	},
	"candidates": [],
}

record := {
	"record_id": "mem-1",
	"tenant_id": "tenant-a",
	"subject": "user-1",
	"memory_class": "profile",
	"kind": "language_preference",
	"key": "preferred_language",
	"source": "trusted_profile",
	"provenance": "user_confirmed",
	"provenance_known": true,
	"trust_rank": 3,
	"confidence_millionths": 900000,
	"created_ns": now_ns - (10 * day_ns),
	"expires_ns": null,
	"status": "active",
	"revision": 1,
	"outranked": false,
	"derived": false,
}

operator := [
	{"op": "replace", "path": "/caller/roles", "value": ["operator"]},
	{"op": "replace", "path": "/query/purpose", "value": "inspection"},
]

inspection := array.concat(operator, [
	{"op": "replace", "path": "/operation", "value": "inspect"},
	{"op": "replace", "path": "/query/tenant_id", "value": null},
	{"op": "replace", "path": "/query/allowed_classes", "value": null},
])

# Short forms, so that a case reads as what it changes.
set_(path, value) := {"op": "replace", "path": path, "value": value}

gone(path) := {"op": "remove", "path": path}

decided(patch) := answer if {
	asked := json.patch(request, patch)
	answer := read.decision with input as asked
}

ids(rows) := {row.rule_id | some row in rows}

reasons(rows) := {row.reason | some row in rows}

# --- denials -----------------------------------------------------------------------------------------------

denied := {
	"another tenant": {"patch": [set_("/query/tenant_id", "tenant-b")], "rules": {"MEM-R-101": "tenant_mismatch"}},
	"a tenant that differs in case": {
		"patch": [set_("/query/tenant_id", "Tenant-A")],
		"rules": {"MEM-R-101": "tenant_mismatch"},
	},
	"no tenant": {"patch": [gone("/query/tenant_id")], "rules": {"MEM-R-101": "tenant_mismatch"}},
	"a caller without a tenant": {
		"patch": [gone("/caller/tenant_id")],
		"rules": {"MEM-R-101": "tenant_mismatch", "MEM-R-112": "query_malformed"},
	},
	"blank tenants agree and are still refused": {
		"patch": [set_("/query/tenant_id", ""), set_("/caller/tenant_id", "")],
		"rules": {"MEM-R-112": "query_malformed"},
	},
	"an operator searches all tenants": {
		"patch": array.concat(operator, [set_("/query/tenant_id", null)]),
		"rules": {"MEM-R-101": "tenant_mismatch"},
	},
	"no principal": {
		"patch": [set_("/query/principal_id", ""), set_("/caller/principal_id", "")],
		"rules": {"MEM-R-102": "principal_missing"},
	},
	"another principal": {
		"patch": [set_("/query/principal_id", "user-2")],
		"rules": {"MEM-R-103": "principal_mismatch"},
	},
	"a query without a principal": {
		"patch": [gone("/query/principal_id")],
		"rules": {"MEM-R-103": "principal_mismatch"},
	},
	"an unknown purpose": {"patch": [set_("/query/purpose", "marketing")], "rules": {"MEM-R-104": "purpose_unknown"}},
	"no purpose": {"patch": [gone("/query/purpose")], "rules": {"MEM-R-104": "purpose_unknown"}},
	"a limit of zero": {"patch": [set_("/query/limit", 0)], "rules": {"MEM-R-105": "limit_out_of_bounds"}},
	"a limit above the bound": {"patch": [set_("/query/limit", 101)], "rules": {"MEM-R-105": "limit_out_of_bounds"}},
	"an inspection above its bound": {
		"patch": array.concat(inspection, [set_("/query/limit", 1001)]),
		"rules": {"MEM-R-105": "limit_out_of_bounds"},
	},
	"a limit that is a text": {"patch": [set_("/query/limit", "5")], "rules": {"MEM-R-105": "limit_out_of_bounds"}},
	"no limit": {"patch": [gone("/query/limit")], "rules": {"MEM-R-105": "limit_out_of_bounds"}},
	"personalization reads no notes": {
		"patch": [set_("/query/purpose", "personalization")],
		"rules": {"MEM-R-106": "class_not_permitted"},
	},
	"an unknown class": {
		"patch": [set_("/query/allowed_classes", ["profile", "archive"])],
		"rules": {"MEM-R-106": "class_not_permitted"},
	},
	"no class": {"patch": [set_("/query/allowed_classes", [])], "rules": {"MEM-R-106": "class_not_permitted"}},
	"classes left open": {
		"patch": [set_("/query/allowed_classes", null)],
		"rules": {"MEM-R-106": "class_not_permitted"},
	},
	"another subject": {"patch": [set_("/query/subject", "user-2")], "rules": {"MEM-R-107": "subject_mismatch"}},
	"no subject at all": {
		"patch": [gone("/query/subject"), gone("/caller/subject")],
		"rules": {"MEM-R-107": "subject_mismatch", "MEM-R-112": "query_malformed"},
	},
	"an operator's role without the purpose": {
		"patch": [set_("/caller/roles", ["operator"]), set_("/query/subject", "user-2")],
		"rules": {"MEM-R-107": "subject_mismatch"},
	},
	"the purpose without the role": {
		"patch": [set_("/query/purpose", "inspection"), set_("/query/subject", "user-2")],
		"rules": {"MEM-R-107": "subject_mismatch"},
	},
	"an inspection without the role": {
		"patch": [set_("/operation", "inspect"), set_("/query/purpose", "inspection")],
		"rules": {"MEM-R-108": "inspection_not_permitted"},
	},
	"an inspection for another purpose": {
		"patch": [set_("/operation", "inspect"), set_("/caller/roles", ["operator"])],
		"rules": {"MEM-R-108": "inspection_not_permitted"},
	},
	"all tenants without the role": {
		"patch": [set_("/query/tenant_id", null)],
		"rules": {"MEM-R-101": "tenant_mismatch"},
	},
	"an unknown operation": {"patch": [set_("/operation", "export")], "rules": {"MEM-R-109": "operation_unknown"}},
	"no operation": {"patch": [gone("/operation")], "rules": {"MEM-R-109": "operation_unknown"}},
	"a trust floor of none": {"patch": [set_("/query/trust_min_rank", 0)], "rules": {"MEM-R-110": "trust_min_unknown"}},
	"a trust floor as a text": {
		"patch": [set_("/query/trust_min_rank", "high")],
		"rules": {"MEM-R-110": "trust_min_unknown"},
	},
	"a negative age": {"patch": [set_("/query/max_age_days", -1)], "rules": {"MEM-R-111": "max_age_invalid"}},
	"an age beyond all bounds": {
		"patch": [set_("/query/max_age_days", 40000)],
		"rules": {"MEM-R-111": "max_age_invalid"},
	},
	"no age": {"patch": [gone("/query/max_age_days")], "rules": {"MEM-R-111": "max_age_invalid"}},
	"provenance wanted in words": {
		"patch": [set_("/query/require_provenance", "yes")],
		"rules": {"MEM-R-112": "query_malformed"},
	},
	"a kind instead of kinds": {
		"patch": [set_("/query/kinds", "preference")],
		"rules": {"MEM-R-112": "query_malformed"},
	},
	"candidates by name": {"patch": [set_("/candidates", {"a": {}})], "rules": {"MEM-R-112": "query_malformed"}},
	"no time": {"patch": [gone("/now_ns")], "rules": {"MEM-R-112": "query_malformed"}},
}

test_denied[note] if {
	some note, case in denied
	answer := decided(case.patch)
	answer.allow == false
	ids(answer.deny) == object.keys(case.rules)
	reasons(answer.deny) == {reason | some reason in case.rules}
	answer.plan.clauses == []
	answer.admitted == []
}

test_an_empty_input_is_denied if {
	answer := read.decision with input as {}
	answer.allow == false
	count(answer.deny) == 11
}

# Settings without which no query is permitted, one at a time.
settings_needed := {name: object.remove(data.memory.settings, [name]) | some name in {
	"age_limits",
	"inspection_purpose",
	"limits",
	"operator_roles",
	"provenance_classes",
	"purposes",
	"summary_kinds",
	"trust_floors",
	"trust_ranks",
}}

test_settings_needed[name] if {
	some name, left in settings_needed
	asked := json.patch(request, inspection)
	answer := read.decision with input as asked with data.memory.settings as left
	answer.allow == false
}

test_without_settings_the_version_is_unknown if {
	answer := read.decision with input as request with data.memory.settings as {}
	answer.policy.version == "unknown"
}

# --- permitted requests and their plans --------------------------------------------------------------------

walls := {"MEM-R-001", "MEM-R-002"}

usual := {"MEM-R-201", "MEM-R-202", "MEM-R-203", "MEM-R-204", "MEM-R-205", "MEM-R-206", "MEM-R-207"}

permitted := {
	"a search": {"patch": [], "clauses": (walls | usual)},
	"a get": {"patch": [set_("/operation", "get")], "clauses": (walls | usual)},
	"a list": {"patch": [set_("/operation", "list")], "clauses": (walls | usual)},
	"the caller's own subject": {"patch": [set_("/query/subject", "user-1")], "clauses": (walls | usual)},
	"the smallest limit": {"patch": [set_("/query/limit", 1)], "clauses": (walls | usual)},
	"the greatest limit": {"patch": [set_("/query/limit", 100)], "clauses": (walls | usual)},
	"planning": {"patch": [set_("/query/purpose", "planning")], "clauses": (walls | usual)},
	"personalization": {
		"patch": [set_("/query/purpose", "personalization"), set_("/query/allowed_classes", ["profile"])],
		"clauses": (walls | usual),
	},
	"a compliance review has no trust floor": {
		"patch": [set_("/query/purpose", "compliance_review")],
		"clauses": (walls | usual) - {"MEM-R-204"},
	},
	"an inspection without the role stays within its subject": {
		"patch": [set_("/query/purpose", "inspection")],
		"clauses": (walls | usual) - {"MEM-R-204"},
	},
	"an operator who searches": {"patch": operator, "clauses": ({"MEM-R-001"} | usual) - {"MEM-R-204"}},
	"an operator who searches for one subject": {
		"patch": array.concat(operator, [set_("/query/subject", "user-2")]),
		"clauses": (walls | usual) - {"MEM-R-204"},
	},
	"a trust floor of the query": {"patch": [set_("/query/trust_min_rank", 3)], "clauses": (walls | usual)},
	"an age of the query": {"patch": [set_("/query/max_age_days", 365)], "clauses": (walls | usual)},
	"an inspection of everything": {"patch": inspection, "clauses": set()},
	"the greatest inspection": {
		"patch": array.concat(inspection, [set_("/query/limit", 1000)]),
		"clauses": set(),
	},
	"an inspection of one tenant": {
		"patch": array.concat(inspection, [set_("/query/tenant_id", "tenant-a")]),
		"clauses": {"MEM-R-001"},
	},
	"an inspection of one class, trust and status": {
		"patch": array.concat(inspection, [
			set_("/query/allowed_classes", ["profile"]),
			set_("/query/trust_min_rank", 2),
			set_("/query/statuses", ["quarantined"]),
		]),
		"clauses": {"MEM-R-201", "MEM-R-204", "MEM-R-015"},
	},
	"selectors": {
		"patch": [
			set_("/query/kinds", ["preference"]),
			set_("/query/sources", ["user_input"]),
			set_("/query/keys", ["colour"]),
			set_("/query/record_ids", ["mem-1"]),
		],
		"clauses": ((walls | usual) | {"MEM-R-011", "MEM-R-012", "MEM-R-013", "MEM-R-014"}),
	},
}

test_permitted[note] if {
	some note, case in permitted
	answer := decided(case.patch)
	answer.allow == true
	answer.deny == set()
	answer.obligations == []
	answer.plan.complete == true
	ids(answer.plan.clauses) == case.clauses
}

clauses_of(patch, rule_id) := {{"any_of": clause.any_of, "classes": clause.classes} |
	some clause in decided(patch).plan.clauses
	clause.rule_id == rule_id
}

at_least(attribute, value, classes) := {
	"any_of": [{"attribute": attribute, "operator": "gte", "value": value}],
	"classes": classes,
}

planned := {
	"classes have a trust floor": {
		"patch": [],
		"rule": "MEM-R-204",
		"clauses": {at_least("trust_rank", 2, ["long_term", "profile"])},
	},
	"the query's trust floor is the higher": {
		"patch": [set_("/query/trust_min_rank", 3)],
		"rule": "MEM-R-204",
		"clauses": {at_least("trust_rank", 3, null)},
	},
	"the class's trust floor is the higher": {
		"patch": [set_("/query/trust_min_rank", 1)],
		"rule": "MEM-R-204",
		"clauses": {at_least("trust_rank", 1, null), at_least("trust_rank", 2, ["long_term", "profile"])},
	},
	"classes have a greatest age": {
		"patch": [],
		"rule": "MEM-R-205",
		"clauses": {
			at_least("created_ns", now_ns - (30 * day_ns), ["short_term"]),
			at_least("created_ns", now_ns - (730 * day_ns), ["long_term", "profile"]),
		},
	},
	"the lower age counts": {
		"patch": [set_("/query/max_age_days", 90)],
		"rule": "MEM-R-205",
		"clauses": {
			at_least("created_ns", now_ns - (30 * day_ns), ["short_term"]),
			at_least("created_ns", now_ns - (90 * day_ns), null),
		},
	},
	"durable classes need provenance": {
		"patch": [],
		"rule": "MEM-R-206",
		"clauses": {{
			"any_of": [{"attribute": "provenance_known", "operator": "eq", "value": true}],
			"classes": ["long_term", "profile"],
		}},
	},
	"a query may demand provenance of all": {
		"patch": [set_("/query/require_provenance", true)],
		"rule": "MEM-R-206",
		"clauses": {{
			"any_of": [{"attribute": "provenance_known", "operator": "eq", "value": true}],
			"classes": null,
		}},
	},
	"the subject wall": {
		"patch": [],
		"rule": "MEM-R-002",
		"clauses": {{
			"any_of": [
				{"attribute": "subject", "operator": "is_null", "value": null},
				{"attribute": "subject", "operator": "eq", "value": "user-1"},
			],
			"classes": null,
		}},
	},
}

test_planned[note] if {
	some note, case in planned
	clauses_of(case.patch, case.rule) == case.clauses
}

test_a_rule_without_a_clause_makes_the_plan_incomplete if {
	answer := read.decision with input as request with read.incomplete as {"MEM-R-250"}
	answer.plan.complete == false
}

# --- records -----------------------------------------------------------------------------------------------

excluded := {
	"another tenant's": {"record": [set_("/tenant_id", "tenant-b")], "rules": {"MEM-R-001": "tenant_wall"}},
	"another subject's": {"record": [set_("/subject", "user-2")], "rules": {"MEM-R-002": "subject_wall"}},
	"another subject than the operator names": {
		"query": array.concat(operator, [set_("/query/subject", "user-2")]),
		"rules": {"MEM-R-002": "subject_wall"},
	},
	"kind not asked for": {
		"query": [set_("/query/kinds", ["preference"])],
		"rules": {"MEM-R-011": "kind_not_selected"},
	},
	"source not asked for": {
		"query": [set_("/query/sources", ["user_input"])],
		"rules": {"MEM-R-012": "source_not_selected"},
	},
	"key not asked for": {"query": [set_("/query/keys", ["colour"])], "rules": {"MEM-R-013": "key_not_selected"}},
	"no key where one is asked for": {
		"query": [set_("/query/keys", ["colour"])],
		"record": [set_("/key", null)],
		"rules": {"MEM-R-013": "key_not_selected"},
	},
	"id not asked for": {
		"query": [set_("/query/record_ids", ["mem-2"])],
		"rules": {"MEM-R-014": "record_not_selected"},
	},
	"status not asked for": {
		"query": [set_("/query/statuses", ["quarantined"])],
		"rules": {"MEM-R-015": "status_not_selected"},
	},
	"class not allowed": {
		"query": [set_("/query/allowed_classes", ["long_term"])],
		"rules": {"MEM-R-201": "class_not_allowed"},
	},
	"quarantined": {"record": [set_("/status", "quarantined")], "rules": {"MEM-R-202": "status_not_active"}},
	"superseded": {"record": [set_("/status", "superseded")], "rules": {"MEM-R-202": "status_not_active"}},
	"tombstone": {"record": [set_("/status", "tombstone")], "rules": {"MEM-R-202": "status_not_active"}},
	"at the instant of expiry": {"record": [set_("/expires_ns", now_ns)], "rules": {"MEM-R-203": "expired"}},
	"low trust in a profile": {"record": [set_("/trust_rank", 1)], "rules": {"MEM-R-204": "trust_below_minimum"}},
	"medium trust where high is wanted": {
		"query": [set_("/query/trust_min_rank", 3)],
		"record": [set_("/trust_rank", 2)],
		"rules": {"MEM-R-204": "trust_below_minimum"},
	},
	"a profile of three years": {
		"record": [set_("/created_ns", now_ns - (1095 * day_ns))],
		"rules": {"MEM-R-205": "age_above_maximum"},
	},
	"a note of 31 days": {
		"record": [set_("/memory_class", "short_term"), set_("/created_ns", now_ns - (31 * day_ns))],
		"rules": {"MEM-R-205": "age_above_maximum"},
	},
	"older than the query asks for": {
		"query": [set_("/query/max_age_days", 9)],
		"rules": {"MEM-R-205": "age_above_maximum"},
	},
	"a profile of unknown provenance": {
		"record": [set_("/provenance_known", false)],
		"rules": {"MEM-R-206": "provenance_unknown"},
	},
	"a note of unknown provenance where it is demanded": {
		"query": [set_("/query/require_provenance", true)],
		"record": [set_("/memory_class", "short_term"), set_("/provenance_known", false)],
		"rules": {"MEM-R-206": "provenance_unknown"},
	},
	"an outranked summary": {
		"record": [set_("/kind", "session_summary"), set_("/outranked", true)],
		"rules": {"MEM-R-207": "summary_outranked"},
	},
	"several at once": {
		"record": [set_("/status", "superseded"), set_("/trust_rank", 1)],
		"rules": {"MEM-R-202": "status_not_active", "MEM-R-204": "trust_below_minimum"},
	},
}

test_excluded[note] if {
	some note, case in excluded
	shown := json.patch(record, object.get(case, "record", []))
	answer := decided(array.concat(object.get(case, "query", []), [set_("/candidates", [shown])]))
	answer.allow == true
	answer.admitted == []
	ids(answer.excluded) == object.keys(case.rules)
	reasons(answer.excluded) == {reason | some reason in case.rules}
}

admitted := {
	"the caller's own": {},
	"nobody's in particular": {"record": [set_("/subject", null)]},
	"one that has not expired yet": {"record": [set_("/expires_ns", now_ns + 1)]},
	"one of exactly the greatest age": {
		"query": [set_("/query/max_age_days", 10)],
		"record": [set_("/created_ns", now_ns - (10 * day_ns))],
	},
	"medium trust in long_term": {"record": [set_("/memory_class", "long_term"), set_("/trust_rank", 2)]},
	"low trust in short_term": {"record": [set_("/memory_class", "short_term"), set_("/trust_rank", 1)]},
	"a note of unknown provenance": {
		"record": [set_("/memory_class", "short_term"), set_("/provenance_known", false)],
	},
	"a summary that nothing outranks": {"record": [set_("/kind", "session_summary")]},
	"something else that is outranked": {"record": [set_("/outranked", true)]},
	"what the selectors ask for": {"query": [
		set_("/query/kinds", ["language_preference"]),
		set_("/query/sources", ["trusted_profile"]),
		set_("/query/keys", ["preferred_language"]),
		set_("/query/record_ids", ["mem-1"]),
		set_("/query/statuses", ["active"]),
	]},
	"low trust in a compliance review": {
		"query": [set_("/query/purpose", "compliance_review")],
		"record": [set_("/trust_rank", 1)],
	},
	"everything in an inspection": {
		"query": inspection,
		"record": [
			set_("/tenant_id", "tenant-b"),
			set_("/subject", "user-2"),
			set_("/status", "quarantined"),
			set_("/trust_rank", 1),
			set_("/expires_ns", 1),
			set_("/created_ns", 1),
			set_("/provenance_known", false),
		],
	},
	"another subject's for an operator": {"query": operator, "record": [set_("/subject", "user-2")]},
}

test_admitted[note] if {
	some note, case in admitted
	shown := json.patch(record, object.get(case, "record", []))
	answer := decided(array.concat(object.get(case, "query", []), [set_("/candidates", [shown])]))
	answer.admitted == [0]
	answer.excluded == set()
}

readable := {sprintf("%s %d", [source, rank]): [set_("/source", source), set_("/trust_rank", rank)] |
	some source, _ in data.memory.settings.sources
	some rank in [1, 2, 3]
}

test_readable[note] if {
	some note, patch in readable
	shown := json.patch(record, array.concat(patch, [set_("/memory_class", "short_term")]))
	decided([set_("/candidates", [shown])]).admitted == [0]
}

test_records_are_judged_one_by_one if {
	other := json.patch(record, [set_("/status", "superseded")])
	answer := decided([set_("/candidates", [other, record, other])])
	answer.admitted == [1]
	{row.index | some row in answer.excluded} == {0, 2}
}
