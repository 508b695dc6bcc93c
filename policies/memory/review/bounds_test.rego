# Where each bound of the review policy lies, and what is no list. An engine may give no answer at all where a list
# is none, which is a refusal, too; so some conditions are asked alone.
package memory.review_test

import data.memory.review
import data.memory.settings

import future.keywords.not
import rego.v1

asked_with(operation, caller_patch, candidates) := {
	"operation": operation,
	"now_ns": now,
	"caller": json.patch(reviewer, caller_patch),
	"candidates": candidates,
	"review": why,
}

# --- who reviews, and what --------------------------------------------------------------------------------

no_roles := {
	"a text": "reviewer",
	"an empty text": "",
	"nothing": null,
	"a mapping": {"reviewer": "reviewer"},
	"an empty mapping": {},
}

test_no_roles[note] if {
	some note, value in no_roles
	not roles_of([set_("/roles", value)])
}

test_roles_are_a_list_that_may_be_empty if {
	roles_of([set_("/roles", [])]) == []
	roles_of([]) == ["reviewer"]
}

roles_of(patch) := found if {
	asked := asked_with("release", patch, [])
	found := review.roles_of_caller with input as asked
}

# Nothing of a review is said of anything but a release or a rejection.
test_a_write_is_no_review if {
	asked := asked_with("write", [], [candidate])
	not review.permitted with input as asked
	looked_at := review.under_review with input as asked
	looked_at == {}
}

test_a_write_needs_no_reviewer if {
	asked := asked_with("write", [set_("/roles", [])], [candidate])
	denials := review.deny with input as asked
	denials == set()
}

listed := {"none": [], "one": [candidate]}

test_listed[note] if {
	some note, candidates in listed
	permitted_with(candidates, settings)
}

unlisted := {"a mapping": {}, "a mapping of one": {"a": candidate}, "a text": "", "nothing": null}

test_unlisted[note] if {
	some note, candidates in unlisted
	not permitted_with(candidates, settings)
}

parts_needed := {path: json.patch(settings, [gone(concat("", ["/", path]))]) | some path in {
	"review/roles",
	"review/four_eyes/release",
	"review/reason_chars_max",
}}

test_parts_needed[path] if {
	some path, left in parts_needed
	not permitted_with([candidate], left)
}

permitted_with(candidates, configured) if {
	asked := asked_with("release", [], candidates)
	review.permitted with input as asked
		with data.memory.settings as configured
		with review.under_review as {}
		with review.deny as set()
}

# --- findings ----------------------------------------------------------------------------------------------

test_no_findings_are_a_list_of_findings if {
	answer := decided({"candidate": [set_("/findings", [])]})
	ids(answer.deny) == set()
	answer.allowed == [0]
	asked := asked_with("release", [], [json.patch(candidate, [set_("/findings", [])])])
	found := review.found_in with input as asked
	found == {0: []}
}

no_findings := {"a mapping": {"a": {"type": "x", "field": "content"}}, "an empty mapping": {}, "a text": ""}

test_no_findings[note] if {
	some note, value in no_findings
	asked := asked_with("release", [], [json.patch(candidate, [set_("/findings", value)])])
	found := review.found_in with input as asked
	found == {}
}

test_a_finding_of_a_blank_type_is_none if {
	answer := decided({"candidate": [set_("/findings", [{"type": "", "field": "content"}])]})
	ids(answer.deny) == {"MEM-W-413"}
}

# --- reasons -----------------------------------------------------------------------------------------------

clean := {"nothing found": [], "something else found": ["instruction.override"]}

test_clean[note] if {
	some note, found in clean
	clean_after(found)
}

not_clean := {
	"a secret": ["secret.password"],
	"a mapping": {"a": "instruction.override"},
	"an empty mapping": {},
	"a text": "",
	"nothing": null,
}

test_not_clean[note] if {
	some note, found in not_clean
	not clean_after(found)
}

clean_after(found) if {
	asked := {"operation": "release", "review": {"reason_findings": found}}
	review.reason_without_secret with input as asked
}

# --- names -------------------------------------------------------------------------------------------------

nameless := {
	"written by a blank name": {
		"candidate": [set_("/queue/written_by/principal", "")],
		"says": {["MEM-W-403", "writer_unknown"]},
	},
	"reviewed by a list": {
		"candidate": [set_("/queue/reviewer/principal", [])],
		"says": {["MEM-W-413", "review_malformed"]},
	},
	"for a list of reasons": {
		"review": [set_("/reason", [])],
		"says": {["MEM-W-413", "review_malformed"]},
	},
}

test_nameless[note] if {
	some note, case in nameless
	answer := decided(case)
	answer.allowed == []
	said(answer.deny) == case.says
}

test_words if {
	review.is_word_or_null(null)
	review.is_word_or_null("")
	review.is_word_or_null("user-1")
	not review.is_word_or_null(5)
	not review.is_word_or_null([])
	not review.is_word_or_null({})
}

# --- what every rule relies on -----------------------------------------------------------------------------

# The condition alone: asked about nothing, no other rule looks at the values.
formed(candidate_patch, review_patch) if {
	one := json.patch(candidate, candidate_patch)
	asked := {"operation": "none", "caller": reviewer, "candidates": [], "review": json.patch(why, review_patch)}
	review.review_well_formed(one) with input as asked
}

well_formed_parts := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path, good in {
		"/memory_class": ["", "archive"],
		"/queue/record_id": ["", "mem-1"],
		"/lineage/known": [true, false],
		"/lineage/subjects_match": [true, false],
		"/queue/duplicate": [true, false],
		"/queue/trust_rank": [1, 2, 3],
		"/queue/created_ns": [-1, 0, now],
		"/queue/expires_ns": [null, -1, 0, now],
	}
	some value in good
}

test_well_formed_parts[note] if {
	some note, patch in well_formed_parts
	formed(patch, [])
}

ill_formed_parts := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path, bad in {
		"/memory_class": [null, 5, [], {}],
		"/kind": [null, 5, [], {}],
		"/source": [null, 5, [], {}],
		"/revision_mode": [null, 5, [], {}],
		"/queue/record_id": [null, 5, [], {}],
		"/lineage/known": [null, 1, "true"],
		"/lineage/subjects_match": [null, 1, "true"],
		"/queue/duplicate": [null, 0, "no"],
		"/queue/trust_rank": [0, 4, null, "high"],
		"/queue/created_ns": [null, false, true, "", "today", []],
		"/queue/expires_ns": [false, true, "", "never", []],
	}
	some value in bad
}

test_ill_formed_parts[note] if {
	some note, patch in ill_formed_parts
	not formed(patch, [])
}

types_of_findings := {"nothing found": [], "a type": ["instruction.override"]}

test_types_of_findings[note] if {
	some note, found in types_of_findings
	formed([], [set_("/reason_findings", found)])
}

no_types_of_findings := {
	"a blank type": [""],
	"a number": [5],
	"a list": [[]],
	"a mapping": [{}],
	"a text": "x",
	"no list": {},
}

test_no_types_of_findings[note] if {
	some note, found in no_types_of_findings
	not formed([], [set_("/reason_findings", found)])
}

test_another_operation_is_no_review_whatever_the_settings_say if {
	eyes := object.union(settings.review.four_eyes, {"write": settings.review.four_eyes.release})
	open := object.union(settings, {"review": object.union(settings.review, {"four_eyes": eyes})})
	asked := asked_with("write", [], [candidate])
	not review.permitted with input as asked with data.memory.settings as open
}
