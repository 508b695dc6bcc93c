# Records on either side of each bound, and queries that are no queries.
package memory.read_test

import data.memory.read

import future.keywords.not
import rego.v1

aged(days) := set_("/created_ns", now_ns - (days * day_ns))

note_of(patch) := array.concat([set_("/memory_class", "short_term")], patch)

in_long_term(patch) := array.concat([set_("/memory_class", "long_term")], patch)

# What a record is like, and the rules that keep it out.
beside_bounds := {
	"as trusted as the query asks": {
		"query": [set_("/query/trust_min_rank", 2)],
		"record": [set_("/trust_rank", 2)],
		"rules": set(),
	},
	"more trusted than the query asks": {"query": [set_("/query/trust_min_rank", 2)], "record": [], "rules": set()},
	"less trusted than the query asks": {
		"query": [set_("/query/trust_min_rank", 3)],
		"record": note_of([set_("/trust_rank", 2)]),
		"rules": {"MEM-R-204"},
	},
	"the trust of a profile": {"query": [], "record": [set_("/trust_rank", 2)], "rules": set()},
	"below the trust of long_term": {
		"query": [],
		"record": in_long_term([set_("/trust_rank", 1)]),
		"rules": {"MEM-R-204"},
	},
	"a note of thirty days": {"query": [], "record": note_of([aged(30)]), "rules": set()},
	"a note a moment older": {
		"query": [],
		"record": note_of([set_("/created_ns", (now_ns - (30 * day_ns)) - 1)]),
		"rules": {"MEM-R-205"},
	},
	"a profile of thirty-one days": {"query": [], "record": [aged(31)], "rules": set()},
	"a profile of two years": {"query": [], "record": [aged(730)], "rules": set()},
	"a profile a moment older": {
		"query": [],
		"record": [set_("/created_ns", (now_ns - (730 * day_ns)) - 1)],
		"rules": {"MEM-R-205"},
	},
	"a fact of two years": {"query": [], "record": in_long_term([aged(730)]), "rules": set()},
	"a fact a day older": {"query": [], "record": in_long_term([aged(731)]), "rules": {"MEM-R-205"}},
	"a moment older than the query asks": {
		"query": [set_("/query/max_age_days", 10)],
		"record": [set_("/created_ns", (now_ns - (10 * day_ns)) - 1)],
		"rules": {"MEM-R-205"},
	},
	"provenance that the query demands": {
		"query": [set_("/query/require_provenance", true)],
		"record": note_of([]),
		"rules": set(),
	},
	"a fact of unknown provenance": {
		"query": [],
		"record": in_long_term([set_("/provenance_known", false)]),
		"rules": {"MEM-R-206"},
	},
	"a note of unknown provenance": {"query": [], "record": note_of([set_("/provenance_known", false)]), "rules": set()},
	"the subject that an operator names": {
		"query": array.concat(operator, [set_("/query/subject", "user-2")]),
		"record": [set_("/subject", "user-2")],
		"rules": set(),
	},
	"nobody, where an operator names a subject": {
		"query": array.concat(operator, [set_("/query/subject", "user-2")]),
		"record": [set_("/subject", null)],
		"rules": set(),
	},
}

test_beside_bounds[note] if {
	some note, case in beside_bounds
	answer := judged(case.query, [case.record])
	answer.allow == true
	ids(answer.excluded) == case.rules
	answer.admitted == [index | some index in [0]; case.rules == set()]
}

# --- queries that are no queries ---------------------------------------------------------------------------

# Of each value the nearest neighbours in the order of types: what stands just below it and just above.
ill_typed := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path, wrong in {
		"/caller/tenant_id": ["", 5, [], ["tenant-a"], {}],
		"/caller/principal_id": [[], ["user-1"], {}],
		"/caller/subject": ["", null, 5, [], ["user-1"], {}],
		"/query/subject": [[], ["user-1"], {}],
		"/query/allowed_classes": [{}, {"profile": true}],
		"/query/require_provenance": [null, 1, "true"],
	}
	some value in wrong
}

test_ill_typed[note] if {
	some note, patch in ill_typed
	answer := decided(patch)
	answer.allow == false
	"MEM-R-112" in ids(answer.deny)
}

# An engine may give no answer at all where a list is none, or an instant no number. That is a refusal, too; here
# the condition of the rule is asked alone, with what else would look at those values out of the way.
lists := [
	"/caller/roles",
	"/query/kinds",
	"/query/sources",
	"/query/keys",
	"/query/record_ids",
	"/query/statuses",
	"/candidates",
]

no_lists := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path in lists
	some value in ["", "user-1", {}, {"user-1": true}, null]
}

test_no_lists[note] if {
	some note, patch in no_lists
	not well_formed_after(patch)
}

no_instants := {sprintf("%v", [value]): [set_("/now_ns", value)] | some value in ["", "now", null, 0, -1]}

test_no_instants[note] if {
	some note, patch in no_instants
	not well_formed_after(patch)
}

# One after the other what a well-formed query has.
incomplete := {path: [gone(path)] | some path in array.concat(lists, [
	"/now_ns",
	"/caller/tenant_id",
	"/caller/principal_id",
	"/caller/subject",
	"/query/subject",
	"/query/allowed_classes",
	"/query/require_provenance",
])}

test_incomplete[note] if {
	some note, patch in incomplete
	not well_formed_after(patch)
}

test_the_usual_query_is_well_formed if {
	well_formed_after([])
}

test_roles_that_are_no_list_are_none[note] if {
	some note, patch in roles_that_are_no_list_are_none
	not roles_after(patch)
}

roles_that_are_no_list_are_none := {sprintf("%v", [value]): [set_("/caller/roles", value)] |
	some value in ["", "reviewer", {}, {"reviewer": true}, null]
}

test_roles_are_a_list_that_may_be_empty if {
	roles_after([]) == []
	roles_after([set_("/caller/roles", ["guest"])]) == ["guest"]
}

roles_after(patch) := found if {
	asked := json.patch(request, patch)
	found := read.roles_of_caller with input as asked with read.inspecting as false
}

well_formed_after(patch) if {
	asked := json.patch(request, patch)
	read.well_formed with input as asked
		with read.inspecting as false
		with read.clauses as set()
		with read.excluded as set()
		with read.admitted as []
}
