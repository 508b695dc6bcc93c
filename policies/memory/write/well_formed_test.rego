# Candidates and callers of which a part is missing or of another type: none is permitted, whatever it is.
package memory.write_test

import data.memory.write

import future.keywords.not
import rego.v1

# What the rule about the form looks at by itself; of every type one, and of what borders on the right type the
# first and the last.
candidate_is_not[path] := [null, true, 0, [], ["a"], {}] if {
	some path in ["/provenance", "/content_digest", "/language"]
}

candidate_is_not[path] := [false, true, 0, 5, [], ["a"], {}] if some path in ["/subject", "/key"]

candidate_is_not[path] := [null, 0, "", "true", [], {}] if some path in ["/provenance_known", "/tombstoned"]

candidate_is_not["/confidence_millionths"] := [null, true, -1, 1000001, "", "1", [], {}]

candidate_is_not["/size_bytes"] := [null, true, -1, "", "1", [], {}]

candidate_is_not["/lineage/count"] := [null, true, -1, "", "1", [], {}]

candidate_is_not["/lineage/min_trust_rank"] := [false, true, 0, 4, "", "high", [], {}]

candidate_is_not["/lineage"] := [{}, {"min_trust_rank": 1}, {"count": 1}]

candidate_is_not["/findings"] := [
	null, true, 5, "", "secret.password", {}, {"type": "a", "field": "b"},
	[null], [{}], [{"type": "a"}], [{"field": "b"}],
	[{"type": "", "field": "b"}], [{"type": 5, "field": "b"}], [{"type": [], "field": "b"}],
	[{"type": "a", "field": ""}], [{"type": "a", "field": 5}], [{"type": "a", "field": []}],
	[{"type": "a", "field": "b"}, {"type": "a", "field": null}],
]

candidate_is_not["/replaces"] := [value | some value in array.concat(
	[false, true, 5, "", "mem-1", [], {}],
	[json.patch(head("low"), [patch]) | some patch in head_is_not],
)]

head_is_not := array.concat(
	[gone(path) | some path in ["/record_id", "/trust_rank", "/revision", "/status"]],
	[set_(path, value) |
		some path, list in {
			"/record_id": [null, 5, [], ["mem-1"], {}],
			"/status": [null, 5, [], ["active"], {}],
			"/trust_rank": [null, true, 0, 4, "low", [], {}],
			"/revision": [null, true, -1, 0, "", "1", [], {}],
		}
		some value in list
	],
)

candidate_is[path] := ["", "a", "x:y"] if some path in ["/provenance", "/content_digest", "/language"]

candidate_is[path] := [null, "", "a"] if some path in ["/subject", "/key"]

candidate_is[path] := [true, false] if some path in ["/provenance_known", "/tombstoned"]

candidate_is["/confidence_millionths"] := [0, 1, 1000000]

candidate_is["/size_bytes"] := [0, 1]

candidate_is["/lineage/count"] := [0, 1]

candidate_is["/lineage/min_trust_rank"] := [null, 1, 2, 3]

candidate_is["/findings"] := [[], [{"type": "a", "field": "b"}, {"type": "c", "field": "d"}]]

candidate_is["/replaces"] := [
	null, head("low"), head("medium"), head("high"),
	json.patch(head("low"), [set_("/record_id", ""), set_("/status", "")]),
]

no_candidates := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path, list in candidate_is_not
	some value in list
}

test_no_candidates[note] if {
	some note, patch in no_candidates
	not write.well_formed(json.patch(candidate, patch))
}

parts_missing := {path: [gone(path)] | some path, _ in candidate_is_not}

test_parts_missing[path] if {
	some path, patch in parts_missing
	not write.well_formed(json.patch(candidate, patch))
}

fine_candidates := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path, list in candidate_is
	some value in list
}

test_fine_candidates[note] if {
	some note, patch in fine_candidates
	write.well_formed(json.patch(candidate, patch))
}

# --- the caller and the instant ----------------------------------------------------------------------------

roles_that_are_none := {sprintf("%v", [value]): value |
	some value in [[5], [null], [["operator"]], [{}], [[]], ["operator", 5]]
}

test_roles_that_are_none[note] if {
	some note, value in roles_that_are_none
	not caller_after([set_("/roles", value)])
}

test_an_empty_role_is_a_text if {
	caller_after([set_("/roles", [""])])
}

no_moments := {sprintf("%v", [value]): value | some value in [null, true, -1, 0, "", "now", [], {}]}

test_no_moments[note] if {
	some note, value in no_moments
	not moment(value)
}

test_the_first_moment_is_one if {
	moment(1)
}

test_without_a_moment_nothing_is_kept if {
	answer := write.decision with input as {"operation": "write", "caller": caller, "candidates": [candidate]}
	answer.allowed == []
	ids(answer.deny) == {"MEM-W-121"}
}

moment(now) if {
	asked := {"operation": "write", "now_ns": now, "caller": caller, "candidates": []}
	write.caller_well_formed with input as asked
}
