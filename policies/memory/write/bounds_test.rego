# Where each bound of the write policy lies, to the very value, what a removal is not asked for, and candidates that
# are no candidates.
package memory.write_test

import data.memory.settings
import data.memory.write

import future.keywords.not
import rego.v1

high := [set_("/source", "trusted_profile")]

# --- what is answered --------------------------------------------------------------------------------------

test_the_version_is_that_of_the_settings if {
	decided({}).policy == {"package": "memory.write", "version": "1.0.0"}
}

# What is refused may have no trust and retention of its own, and then has the least of both.
test_what_is_refused_is_given_the_least if {
	answer := decided({"candidate": [set_("/memory_class", "archive")]})
	answer.assign == [{"trust_level": "low", "retention": "short_term", "ttl_days": 1}]
}

# Of what a record was derived from, and what it replaces, the trust it is given.
derived := {
	"from nothing": {"rank": null, "trust": "high"},
	"from low": {"rank": 1, "trust": "low"},
	"from medium": {"rank": 2, "trust": "medium"},
	"from high": {"rank": 3, "trust": "high"},
}

test_derived[note] if {
	some note, case in derived
	answer := decided({"candidate": array.concat(high, [set_("/lineage/min_trust_rank", case.rank)])})
	answer.allowed == [0]
	answer.assign == [{"trust_level": case.trust, "retention": "long_term", "ttl_days": 730}]
}

test_nothing_is_allowed_by_another_operation_though_no_rule_refuses if {
	asked := {"operation": "merge", "now_ns": 1, "caller": caller, "candidates": [candidate]}
	answer := write.decision with input as asked with write.deny as set()
	answer.allowed == []
}

# --- what a removal is not asked for -----------------------------------------------------------------------

# A candidate that a write would refuse for every reason there is.
refused_by_all := [
	set_("/memory_class", "archive"),
	set_("/kind", "rumour"),
	set_("/key", "system.prompt"),
	set_("/source", "recall"),
	set_("/provenance_known", "yes"),
	set_("/confidence_millionths", -1),
	set_("/revision_mode", "upsert"),
	set_("/size_bytes", 70000),
	set_("/findings", [
		{"type": "secret.password", "field": "key"},
		{"type": "instruction.override", "field": "content"},
		{"type": "rights.grant", "field": "content"},
		{"type": "exfiltration.send", "field": "content"},
		{"type": "key.protected", "field": "key"},
		{"type": "", "field": "content"},
	]),
	set_("/lineage", {"count": 1, "known": false, "min_trust_rank": 0, "subjects_match": false}),
	set_("/replaces", {"record_id": "mem-1"}),
	set_("/tombstoned", true),
]

test_a_removal_is_not_asked_what_a_write_is if {
	answer := decided({"operation": "delete", "candidate": refused_by_all})
	ids(answer.deny) == set()
	answer.quarantine == set()
	answer.obligations == set()
	answer.allowed == [0]
}

test_a_removal_is_not_asked_for_source_or_confidence if {
	conversational := array.concat(preference, [
		set_("/source", "web_page"),
		set_("/confidence_millionths", 0),
		set_("/provenance_known", false),
	])
	answer := decided({"operation": "delete", "candidate": conversational})
	ids(answer.deny) == set()
}

test_a_removal_is_not_asked_who_curates if {
	answer := decided({"operation": "delete", "candidate": preference})
	ids(answer.deny) == set()
}

test_another_operation_is_refused_as_that_alone if {
	answer := decided({
		"operation": "merge",
		"candidate": array.concat(refused_by_all, [set_("/subject", [])]),
	})
	ids(answer.deny) == {"MEM-W-119"}
	answer.quarantine == set()
	answer.obligations == set()
}

# --- settings that are not whole ---------------------------------------------------------------------------

parts_needed := {path: json.patch(settings, [gone(concat("", ["/", path]))]) | some path in {
	"conversation/kinds",
	"conversation/sources",
	"limits/size_bytes_max",
	"protected_keys/prefixes",
}}

test_parts_needed[path] if {
	some path, left in parts_needed
	asked := {"operation": "write", "now_ns": 1790000000000000000, "caller": caller, "candidates": [candidate]}
	answer := write.decision with input as asked with data.memory.settings as left
	answer.allowed == []
}

# --- candidates that are no candidates ---------------------------------------------------------------------

strange := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path, values in {
		"/subject": [[], ["user-1"], {}],
		"/key": [[], ["a"], {}],
		"/provenance_known": [null, 1, "true"],
		"/confidence_millionths": [-1, 1000001, null, "", "1"],
		"/size_bytes": [-1, null],
		"/findings": ["", "secret.password", null, {}, {"type": "secret.password"}],
		"/lineage/min_trust_rank": [0, 4, "high", false],
		"/tombstoned": [null, 0, "no"],
	}
	some value in values
}

# An engine may give no answer at all where a list is none; that is a refusal, too. So the condition of the rule
# is asked alone.
test_strange[note] if {
	some note, patch in strange
	not write.well_formed(json.patch(candidate, patch))
}

usual := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path, values in {
		"/subject": [null, "user-1"],
		"/key": [null, "support.queue"],
		"/provenance_known": [true, false],
		"/confidence_millionths": [0, 1, 1000000],
		"/size_bytes": [0, 1],
		"/findings": [[], [{"type": "secret.password", "field": "content"}]],
		"/lineage/min_trust_rank": [null, 1, 2, 3],
		"/replaces": [null, head("low")],
		"/tombstoned": [true, false],
	}
	some value in values
}

test_usual[note] if {
	some note, patch in usual
	write.well_formed(json.patch(candidate, patch))
}

# What no other rule misses is missed by this one.
unsaid := {path: [gone(path)] | some path in [
	"/subject",
	"/key",
	"/provenance_known",
	"/confidence_millionths",
	"/size_bytes",
	"/findings",
	"/lineage/min_trust_rank",
	"/replaces",
	"/tombstoned",
]}

test_unsaid[path] if {
	some path, patch in unsaid
	"MEM-W-121" in ids(decided({"candidate": patch}).deny)
}

test_a_finding_of_a_blank_type_is_none if {
	answer := decided({"candidate": array.concat(short_term, [found("", "content")])})
	ids(answer.deny) == {"MEM-W-121"}
}

# --- callers that are no callers ---------------------------------------------------------------------------

nobody := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path, values in {
		"/tenant_id": ["", null, [], ["tenant-a"], {}],
		"/principal_id": [[], ["user-1"], {}],
		"/subject": ["", null, [], ["user-1"], {}],
		"/roles": ["", "operator", null, {}, {"operator": true}],
		"/anonymous": [null, 0, "no"],
	}
	some value in values
}

test_nobody[note] if {
	some note, patch in nobody
	not caller_after(patch)
}

somebody := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path, values in {"/roles": [[], ["operator"]], "/anonymous": [true, false]}
	some value in values
}

test_somebody[note] if {
	some note, patch in somebody
	caller_after(patch)
}

caller_after(patch) if {
	asked := {"operation": "write", "now_ns": 1790000000000000000, "caller": json.patch(caller, patch), "candidates": []}
	write.caller_well_formed with input as asked
		with write.caller_is_curator as false
		with write.caller_is_operator as false
		with write.may_write_protected as false
}

# --- lists that are none -----------------------------------------------------------------------------------

listed := {"none": [], "one": [candidate]}

test_listed[note] if {
	some note, candidates in listed
	permitted_with(candidates)
}

unlisted := {"a mapping": {}, "a mapping of one": {"a": candidate}, "a text": "", "nothing": null}

test_unlisted[note] if {
	some note, candidates in unlisted
	not permitted_with(candidates)
}

# The condition alone, with what else would look at the candidates out of the way.
permitted_with(candidates) if {
	asked := {"operation": "write", "now_ns": 1790000000000000000, "caller": caller, "candidates": candidates}
	write.permitted with input as asked
		with write.deny as set()
		with write.quarantine as set()
		with write.obligations as set()
		with write.allowed as []
		with write.assignments as []
		with write.assigned as {}
		with write.trust_ranks as {}
}
