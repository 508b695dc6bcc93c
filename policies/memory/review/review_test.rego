# METADATA
# description: Cases for the review queue. Each names what is changed in a review that is permitted.
package memory.review_test

import data.memory.settings
import data.memory.write

import rego.v1

day := 86400000000000

now := 1790000000000000000

reviewer := {
	"tenant_id": "tenant-a",
	"principal_id": "ada",
	"subject": "ada",
	"roles": ["reviewer"],
	"anonymous": false,
}

candidate := {
	"tenant_id": "tenant-a",
	"subject": "user-1",
	"memory_class": "long_term",
	"kind": "validated_fact",
	"key": "support.queue",
	"source": "trusted_service",
	"provenance": "service_rule",
	"provenance_known": true,
	"confidence_millionths": 900000,
	"revision_mode": "append",
	"size_bytes": 120,
	"content_digest": "hmac:00",
	"language": "en",
	"findings": [{"type": "instruction.override", "field": "content"}],
	"lineage": {"count": 0, "known": true, "min_trust_rank": null, "subjects_match": true},
	"replaces": null,
	"tombstoned": false,
	"queue": {
		"record_id": "mem-1",
		"status": "quarantined",
		"trust_rank": 2,
		"created_ns": now - (10 * day),
		"expires_ns": now + (700 * day),
		"duplicate": false,
		"written_by": {"principal": "hmac:writer", "agent": "hmac:agent"},
		"reviewer": {"principal": "hmac:ada", "agent": null},
	},
}

why := {"reason": "SEC-1423", "reason_chars": 8, "reason_findings": []}

set_(path, value) := {"op": "replace", "path": path, "value": value}

gone(path) := {"op": "remove", "path": path}

head(rank) := {"record_id": "mem-0", "trust_rank": rank, "revision": 1, "status": "active"}

decided(case) := answer if {
	asked := {
		"operation": object.get(case, "operation", "release"),
		"now_ns": now,
		"caller": json.patch(reviewer, object.get(case, "caller", [])),
		"candidates": [json.patch(candidate, object.get(case, "candidate", []))],
		"review": json.patch(why, object.get(case, "review", [])),
	}
	answer := write.decision with input as asked
}

ids(rows) := {row.rule_id | some row in rows}

reasons(rows) := {row.reason | some row in rows}

said(rows) := {[row.rule_id, row.reason] | some row in rows}

# --- denials -----------------------------------------------------------------------------------------------

# What is wrong with the record in every respect: whoever may not review hears of none of it.
hopeless := [
	set_("/queue/status", "active"),
	set_("/tombstoned", true),
	set_("/source", "recall"),
	set_("/findings", [{"type": "secret.password", "field": "content"}]),
]

refused := {
	"by somebody without the role": {
		"caller": [set_("/roles", ["curator"])],
		"says": {["MEM-W-401", "reviewer_required"]},
	},
	"by somebody without any role": {
		"caller": [set_("/roles", [])],
		"candidate": hopeless,
		"review": [set_("/reason_chars", 0)],
		"says": {["MEM-W-401", "reviewer_required"]},
	},
	"by somebody unknown": {
		"caller": [set_("/anonymous", true)],
		"says": {["MEM-W-401", "reviewer_required"]},
	},
	"rejection without the role": {
		"operation": "reject",
		"caller": [set_("/roles", ["curator"])],
		"candidate": hopeless,
		"says": {["MEM-W-401", "reviewer_required"]},
	},
	"of another tenant": {
		"caller": [set_("/tenant_id", "tenant-b")],
		"says": {["MEM-W-101", "tenant_mismatch"]},
	},
	"rejection in another tenant": {
		"operation": "reject",
		"caller": [set_("/tenant_id", "tenant-b")],
		"says": {["MEM-W-101", "tenant_mismatch"]},
	},
	"of what is active": {
		"candidate": [set_("/queue/status", "active")],
		"says": {["MEM-W-402", "not_in_quarantine"]},
	},
	"of what is not there": {
		"candidate": hopeless,
		"says": {["MEM-W-402", "not_in_quarantine"]},
	},
	"of what says no status": {
		"candidate": [gone("/queue/status")],
		"says": {["MEM-W-402", "not_in_quarantine"]},
	},
	"rejection of what is active": {
		"operation": "reject",
		"candidate": [set_("/queue/status", "active")],
		"says": {["MEM-W-402", "not_in_quarantine"]},
	},
	"by the principal who wrote it": {
		"candidate": [set_("/queue/written_by/principal", "hmac:ada")],
		"says": {["MEM-W-403", "four_eyes"]},
	},
	"by a principal whose name the writing agent has": {
		"candidate": [set_("/queue/written_by/agent", "hmac:ada")],
		"says": {["MEM-W-403", "four_eyes"]},
	},
	"by the agent that wrote it": {
		"candidate": [set_("/queue/reviewer/agent", "hmac:agent")],
		"says": {["MEM-W-403", "four_eyes"]},
	},
	"by an agent whose name the writing principal has": {
		"candidate": [set_("/queue/reviewer/agent", "hmac:writer")],
		"says": {["MEM-W-403", "four_eyes"]},
	},
	"by whom it is about": {
		"candidate": [set_("/subject", "ada")],
		"says": {["MEM-W-403", "four_eyes"]},
	},
	"of what nobody knows the writer of": {
		"candidate": [set_("/queue/written_by", {"principal": null, "agent": null})],
		"says": {["MEM-W-403", "writer_unknown"]},
	},
	"without a reason": {
		"review": [set_("/reason_chars", 0)],
		"says": {["MEM-W-404", "reason_missing"]},
	},
	"with a reason a character too long": {
		"review": [set_("/reason_chars", 501)],
		"says": {["MEM-W-404", "reason_too_long"]},
	},
	"with a reason of unknown length": {
		"review": [gone("/reason_chars")],
		"says": {["MEM-W-404", "reason_missing"], ["MEM-W-404", "reason_too_long"]},
	},
	"with a password for a reason": {
		"review": [set_("/reason_findings", ["instruction.override", "secret.password"])],
		"says": {["MEM-W-404", "reason_holds_secret"]},
	},
	"rejection without a reason": {
		"operation": "reject",
		"review": [set_("/reason_chars", 0)],
		"says": {["MEM-W-404", "reason_missing"]},
	},
	"with a finding without a type": {
		"candidate": [set_("/findings", [{"field": "content"}])],
		"says": {["MEM-W-413", "review_malformed"]},
	},
	"quarantine without the role": {
		"operation": "quarantine",
		"caller": [set_("/roles", ["curator"])],
		"candidate": hopeless,
		"says": {["MEM-W-401", "reviewer_required"]},
	},
	"quarantine in another tenant": {
		"operation": "quarantine",
		"caller": [set_("/tenant_id", "tenant-b")],
		"candidate": [set_("/queue/status", "active")],
		"says": {["MEM-W-101", "tenant_mismatch"]},
	},
	"quarantine of what is there already": {
		"operation": "quarantine",
		"says": {["MEM-W-402", "not_active"]},
	},
	"quarantine of what was superseded": {
		"operation": "quarantine",
		"candidate": [set_("/queue/status", "superseded")],
		"says": {["MEM-W-402", "not_active"]},
	},
	"quarantine of what is not there": {
		"operation": "quarantine",
		"candidate": [set_("/queue/status", "absent")],
		"says": {["MEM-W-402", "not_active"]},
	},
	"quarantine without a reason": {
		"operation": "quarantine",
		"candidate": [set_("/queue/status", "active")],
		"review": [set_("/reason_chars", 0)],
		"says": {["MEM-W-404", "reason_missing"]},
	},
	"quarantine with a finding without a type": {
		"operation": "quarantine",
		"candidate": [set_("/queue/status", "active"), set_("/findings", [{"field": "key"}])],
		"says": {["MEM-W-413", "review_malformed"]},
	},
	"rejection with a finding without a type": {
		"operation": "reject",
		"candidate": [set_("/findings", [{"field": "key"}])],
		"says": {["MEM-W-413", "review_malformed"]},
	},
}

test_refused[note] if {
	some note, case in refused
	answer := decided(case)
	answer.allowed == []
	said(answer.deny) == case.says
	answer.quarantine == set()
	count(answer.assign) == 1
}

# What is missing or of another type, for both steps: the rule about it speaks, or the one about the form.
strange := {
	"no subject": [gone("/subject")],
	"a list of subjects": [set_("/subject", ["user-1"])],
	"a number for a subject": [set_("/subject", 5)],
	"no key": [gone("/key")],
	"a list of keys": [set_("/key", ["a"])],
	"no findings": [gone("/findings")],
	"findings as a text": [set_("/findings", "none")],
	"findings as a mapping": [set_("/findings", {})],
	"no word on what it replaces": [gone("/replaces")],
	"no reviewer": [gone("/queue/reviewer")],
	"an empty reviewer": [set_("/queue/reviewer/principal", "")],
	"two reviewers": [set_("/queue/reviewer/principal", ["hmac:ada"])],
	"a number for a reviewing agent": [set_("/queue/reviewer/agent", 5)],
	"no reviewing agent": [gone("/queue/reviewer/agent")],
	"two writers": [set_("/queue/written_by/principal", ["hmac:writer"])],
	"no writing agent": [gone("/queue/written_by/agent")],
	"two writing agents": [set_("/queue/written_by/agent", ["hmac:agent"])],
}

test_strange[note] if {
	some note, patch in strange
	released := decided({"candidate": patch})
	released.allowed == []
	"MEM-W-413" in ids(released.deny)
	rejected := decided({"candidate": patch, "operation": "reject"})
	rejected.allowed == []
	"MEM-W-413" in ids(rejected.deny)
}

strange_reasons := {
	"no reason": [gone("/reason")],
	"an empty reason": [set_("/reason", "")],
	"two reasons": [set_("/reason", ["a"])],
	"findings that are no list": [set_("/reason_findings", {})],
	"findings that are a text": [set_("/reason_findings", "none")],
}

test_strange_reasons[note] if {
	some note, patch in strange_reasons
	answer := decided({"review": patch})
	answer.allowed == []
	"MEM-W-413" in ids(answer.deny)
}

test_without_findings_of_the_reason_it_is_not_clean if {
	answer := decided({"review": [gone("/reason_findings")]})
	said(answer.deny) == {["MEM-W-404", "reason_holds_secret"], ["MEM-W-413", "review_malformed"]}
}

# Settings without which nothing is reviewed.
unset := {
	"all of them": json.patch(settings, [gone("/review")]),
	"the roles": json.patch(settings, [gone("/review/roles")]),
	"the four eyes": json.patch(settings, [gone("/review/four_eyes")]),
	"the four eyes of a rejection": json.patch(settings, [gone("/review/four_eyes/reject")]),
	"the length of a reason": json.patch(settings, [gone("/review/reason_chars_max")]),
	"what a write needs": json.patch(settings, [gone("/permitted")]),
}

test_unset[note] if {
	some note, left in unset
	asked := {"operation": "reject", "now_ns": now, "caller": reviewer, "candidates": [candidate], "review": why}
	answer := write.decision with input as asked with data.memory.settings as left
	answer.allowed == []
}

test_candidates_that_are_no_list_are_not_reviewed if {
	asked := {"operation": "reject", "now_ns": now, "caller": reviewer, "candidates": {"a": candidate}, "review": why}
	answer := write.decision with input as asked
	answer.allowed == []
}

# --- what is permitted -------------------------------------------------------------------------------------

# A rejection asks who, what and why; what is wrong with the record is a reason for it, not against it.
rejected := {
	"a fact": {},
	"one's own": {"candidate": [set_("/queue/written_by/principal", "hmac:ada")]},
	"one's agent's": {"candidate": [set_("/queue/reviewer/agent", "hmac:agent")]},
	"about oneself": {"candidate": [set_("/subject", "ada")]},
	"of an unknown writer": {"candidate": [set_("/queue/written_by", {"principal": null, "agent": null})]},
	"expired": {"candidate": [set_("/queue/expires_ns", now - day)]},
	"with a secret": {"candidate": [set_("/findings", [{"type": "secret.password", "field": "content"}])]},
	"that nobody may write any more": {"candidate": [
		set_("/memory_class", "archive"),
		set_("/confidence_millionths", 0),
		set_("/provenance_known", false),
		set_("/size_bytes", 70000),
		set_("/tombstoned", true),
		set_("/lineage/known", false),
		set_("/lineage/subjects_match", false),
		set_("/replaces", head(3)),
		set_("/queue/duplicate", true),
		set_("/key", "system.prompt"),
		set_("/findings", [{"type": "key.protected", "field": "content"}]),
	]},
}

test_rejected[note] if {
	some note, case in rejected
	answer := decided(object.union(case, {"operation": "reject"}))
	answer.deny == set()
	answer.allowed == [0]
	answer.quarantine == set()
	ids(answer.obligations) == {"MEM-W-421"}
	{one.type | some one in answer.obligations} == {"tombstone"}
}

# What is put into quarantine is asked who and why; whatever is wrong with it is a reason for it.
quarantined := {
	"a fact": [],
	"about oneself": [set_("/subject", "ada")],
	"of a writer whom nobody knows": [set_("/queue/written_by", {"principal": null, "agent": null})],
	"expired": [set_("/queue/expires_ns", now - day)],
	"with a secret": [set_("/findings", [{"type": "secret.password", "field": "content"}])],
	"derived from what is gone": [set_("/lineage/known", false), set_("/lineage/subjects_match", false)],
	"that nobody may write any more": [set_("/memory_class", "archive"), set_("/size_bytes", 70000)],
}

test_quarantined[note] if {
	some note, patch in quarantined
	active := [set_("/queue/status", "active")]
	answer := decided({"operation": "quarantine", "candidate": array.concat(active, patch)})
	answer.deny == set()
	answer.allowed == [0]
	answer.quarantine == set()
	answer.obligations == set()
}

test_settings_may_keep_the_writer_from_putting_into_quarantine if {
	one := json.patch(candidate, [set_("/queue/status", "active"), set_("/queue/written_by/principal", "hmac:ada")])
	asked := {"operation": "quarantine", "now_ns": now, "caller": reviewer, "candidates": [one], "review": why}
	eyes := object.union(settings, {"review": {"four_eyes": {"quarantine": {"principal": true}}}})
	answer := write.decision with input as asked with data.memory.settings as eyes
	said(answer.deny) == {["MEM-W-403", "four_eyes"]}
}

test_without_the_setting_nothing_is_put_into_quarantine if {
	one := json.patch(candidate, [set_("/queue/status", "active")])
	asked := {"operation": "quarantine", "now_ns": now, "caller": reviewer, "candidates": [one], "review": why}
	left := json.patch(settings, [gone("/review/four_eyes/quarantine")])
	answer := write.decision with input as asked with data.memory.settings as left
	answer.allowed == []
}

test_poison_beside_the_content_leaves_the_content_free if {
	findings := [{"type": "instruction.override", "field": "title"}]
	answer := decided({"operation": "reject", "candidate": [set_("/findings", findings)]})
	answer.allowed == [0]
	answer.obligations == set()
}

test_the_tombstone_is_for_what_was_found_in_the_content if {
	findings := [
		{"type": "instruction.override", "field": "content"},
		{"type": "rights.grant", "field": "title"},
	]
	answer := decided({"operation": "reject", "candidate": [set_("/findings", findings)]})
	answer.obligations == {{
		"index": 0,
		"type": "tombstone",
		"rule_id": "MEM-W-421",
		"findings": ["instruction.override"],
	}}
}

test_a_refused_review_obliges_to_nothing if {
	answer := decided({"operation": "reject", "caller": [set_("/roles", [])]})
	answer.obligations == set()
}

# Four eyes as the settings say: each of the three counts for the step that it is switched on for.
eyes := {
	"the writer of a rejection": {"who": "principal", "candidate": [set_("/queue/written_by/principal", "hmac:ada")]},
	"the agent of a rejection": {"who": "agent", "candidate": [set_("/queue/reviewer/agent", "hmac:agent")]},
	"the subject of a rejection": {"who": "subject", "candidate": [set_("/subject", "ada")]},
}

test_eyes[note] if {
	some note, case in eyes
	asked := {
		"operation": "reject",
		"now_ns": now,
		"caller": reviewer,
		"candidates": [json.patch(candidate, case.candidate)],
		"review": why,
	}
	off := object.union(settings, {"review": {"four_eyes": {"release": {case.who: false}}}})
	on := object.union(settings, {"review": {"four_eyes": {"reject": {case.who: true}}}})
	strict := write.decision with input as asked with data.memory.settings as on
	said(strict.deny) == {["MEM-W-403", "four_eyes"]}
	asked_for := object.union(asked, {"operation": "release"})
	loose := write.decision with input as asked_for with data.memory.settings as off
	loose.deny == set()
	loose.allowed == [0]
}
