# Where each bound of the read policy lies, to the very value, and what holds though no other rule refuses. The
# values are those that users rely on, written out and not taken from the settings.
package memory.read_test

import data.memory.read
import data.memory.settings

import rego.v1

nothing_planned := {"complete": false, "limit": 0, "clauses": []}

# The answer about records, each given as what it changes of the usual one.
judged(query, records) := decided(array.concat(query, [set_("/candidates", [one |
	some patch in records
	one := json.patch(record, patch)
])]))

# --- bounds of a query -------------------------------------------------------------------------------------

# Every case is an inspection or a search; what is listed are all rules that refuse it.
bounded := {
	"age of zero": {"patch": [set_("/query/max_age_days", 0)], "rules": set()},
	"age of a day": {"patch": [set_("/query/max_age_days", 1)], "rules": set()},
	"the greatest age": {"patch": [set_("/query/max_age_days", 36500)], "rules": set()},
	"a day above the greatest age": {"patch": [set_("/query/max_age_days", 36501)], "rules": {"MEM-R-111"}},
	"the least trust": {"patch": [set_("/query/trust_min_rank", 1)], "rules": set()},
	"trust between": {"patch": [set_("/query/trust_min_rank", 2)], "rules": set()},
	"the greatest trust": {"patch": [set_("/query/trust_min_rank", 3)], "rules": set()},
	"trust above the greatest": {"patch": [set_("/query/trust_min_rank", 4)], "rules": {"MEM-R-110"}},
	"an inspection of nothing": {
		"patch": array.concat(inspection, [set_("/query/limit", 0)]),
		"rules": {"MEM-R-105"},
	},
	"the smallest inspection": {"patch": array.concat(inspection, [set_("/query/limit", 1)]), "rules": set()},
	"more than a search may ask for": {
		"patch": array.concat(inspection, [set_("/query/limit", 101)]),
		"rules": set(),
	},
	"an operator names another tenant": {
		"patch": array.concat(inspection, [set_("/query/tenant_id", "tenant-b")]),
		"rules": {"MEM-R-101"},
	},
	"an operator names no class": {
		"patch": array.concat(inspection, [set_("/query/allowed_classes", [])]),
		"rules": {"MEM-R-106"},
	},
	"the first instant": {"patch": [set_("/now_ns", 1)], "rules": set()},
	"no instant": {"patch": [set_("/now_ns", 0)], "rules": {"MEM-R-112"}},
	"personalization from long_term": {
		"patch": [set_("/query/purpose", "personalization"), set_("/query/allowed_classes", ["long_term"])],
		"rules": set(),
	},
	"personalization from profiles": {
		"patch": [set_("/query/purpose", "personalization"), set_("/query/allowed_classes", ["profile"])],
		"rules": set(),
	},
	"personalization from notes": {
		"patch": [set_("/query/purpose", "personalization"), set_("/query/allowed_classes", ["short_term"])],
		"rules": {"MEM-R-106"},
	},
}

test_bounded[note] if {
	some note, case in bounded
	answer := decided(case.patch)
	ids(answer.deny) == case.rules
	permits(answer, case.rules)
}

permits(answer, rules) if {
	rules == set()
	answer.allow == true
}

permits(answer, rules) if {
	rules != set()
	answer.allow == false
}

# Each purpose with each class that it may read, alone.
readable_by := {sprintf("%s %s", [purpose, class]): {"purpose": purpose, "class": class} |
	some purpose in ["answer_generation", "planning", "inspection", "compliance_review"]
	some class in ["short_term", "long_term", "profile"]
}

test_readable_by[note] if {
	some note, case in readable_by
	answer := decided([set_("/query/purpose", case.purpose), set_("/query/allowed_classes", [case.class])])
	ids(answer.deny) == set()
}

test_an_inspection_has_the_lower_bound_of_a_query if {
	limits := object.union(settings.limits, {"query_min": 5, "query_max": 4})
	other := object.union(settings, {"limits": limits})
	least := json.patch(request, array.concat(inspection, [set_("/query/limit", 5)]))
	answer := read.decision with input as least with data.memory.settings as other
	answer.allow == true
}

# --- what is answered --------------------------------------------------------------------------------------

test_the_version_is_that_of_the_settings if {
	answer := decided([])
	answer.policy == {"package": "memory.read", "version": "1.0.0"}
}

test_a_refusal_plans_and_admits_nothing if {
	answer := judged([set_("/query/purpose", "marketing")], [[]])
	ids(answer.deny) == {"MEM-R-104"}
	answer.plan == nothing_planned
	answer.admitted == []
	count(answer.excluded) == 0
}

test_a_question_about_records_is_not_planned_again if {
	answer := judged([], [[]])
	answer.allow == true
	answer.plan == nothing_planned
}

test_a_plan_judges_no_record if {
	answer := decided([])
	answer.plan.limit == 5
	answer.admitted == []
	answer.excluded == []
}

test_an_incomplete_plan_has_its_limit_and_clauses if {
	answer := read.decision with input as request with read.incomplete as {"MEM-R-250"}
	answer.plan.complete == false
	answer.plan.limit == 5
	ids(answer.plan.clauses) == walls | usual
}

test_no_rule_is_without_a_clause if {
	read.incomplete == set()
}

# --- what holds though no rule refuses ---------------------------------------------------------------------

test_nothing_is_permitted_without_a_purpose if {
	asked := json.patch(request, [set_("/query/purpose", "marketing")])
	answer := read.decision with input as asked with read.deny as set()
	answer.allow == false
}

test_the_subject_wall_is_the_callers_own if {
	asked := json.patch(request, [set_("/query/subject", "user-2")])
	answer := read.decision with input as asked with read.deny as set()
	own := [clause.any_of | some clause in answer.plan.clauses; clause.rule_id == "MEM-R-002"]
	own == [[
		{"attribute": "subject", "operator": "is_null", "value": null},
		{"attribute": "subject", "operator": "eq", "value": "user-1"},
	]]
}

test_the_callers_own_is_admitted_whatever_subject_is_named if {
	asked := json.patch(request, [set_("/query/subject", "user-2"), set_("/candidates", [record])])
	answer := read.decision with input as asked with read.deny as set()
	answer.admitted == [0]
}

# --- clauses -----------------------------------------------------------------------------------------------

# Settings under which an inspection would have the floors and bounds of a search, if it were not for its operation.
strict := object.union(settings, {"purposes": {"inspection": {
	"classes": {"short_term": true, "long_term": true, "profile": true},
	"class_trust_floors": true,
}}})

inspected := array.concat(inspection, [
	set_("/query/max_age_days", 1000),
	set_("/query/require_provenance", true),
])

test_an_inspection_has_no_filters_of_a_search if {
	asked := json.patch(request, inspected)
	answer := read.decision with input as asked with data.memory.settings as strict
	answer.allow == true
	answer.plan.clauses == set()
}

test_an_inspection_has_no_filters_of_a_search_without_provenance if {
	asked := json.patch(request, inspection)
	answer := read.decision with input as asked with data.memory.settings as strict
	answer.allow == true
	answer.plan.clauses == set()
}

test_an_inspection_shows_what_a_search_does_not if {
	shown := json.patch(record, [
		set_("/status", "quarantined"),
		set_("/kind", "session_summary"),
		set_("/outranked", true),
		set_("/trust_rank", 1),
		set_("/expires_ns", 1),
		set_("/created_ns", 1),
		set_("/provenance_known", false),
	])
	asked := json.patch(request, array.concat(inspected, [set_("/candidates", [shown])]))
	answer := read.decision with input as asked with data.memory.settings as strict
	answer.admitted == [0]
	ids(answer.excluded) == set()
}

bounds_planned := {
	"the query's trust floor is that of the class": {
		"patch": [set_("/query/trust_min_rank", 2)],
		"rule": "MEM-R-204",
		"clauses": {at_least("trust_rank", 2, null)},
	},
	"the query's age is that of a class": {
		"patch": [set_("/query/max_age_days", 30)],
		"rule": "MEM-R-205",
		"clauses": {at_least("created_ns", now_ns - (30 * day_ns), null)},
	},
	"the query's age is above that of a class": {
		"patch": [set_("/query/max_age_days", 31)],
		"rule": "MEM-R-205",
		"clauses": {
			at_least("created_ns", now_ns - (30 * day_ns), ["short_term"]),
			at_least("created_ns", now_ns - (31 * day_ns), null),
		},
	},
	"the query's age is that of the other class": {
		"patch": [set_("/query/max_age_days", 730)],
		"rule": "MEM-R-205",
		"clauses": {
			at_least("created_ns", now_ns - (30 * day_ns), ["short_term"]),
			at_least("created_ns", now_ns - (730 * day_ns), null),
		},
	},
	"summaries that are outranked": {
		"patch": [],
		"rule": "MEM-R-207",
		"clauses": {{
			"any_of": [
				{"attribute": "outranked", "operator": "eq", "value": false},
				{"attribute": "kind", "operator": "not_in", "value": ["session_summary"]},
			],
			"classes": null,
		}},
	},
}

test_bounds_planned[note] if {
	some note, case in bounds_planned
	clauses_of(case.patch, case.rule) == case.clauses
}
