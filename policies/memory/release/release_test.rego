# METADATA
# description: Cases for what may be let go. Each names what is changed in a review that is permitted.
package memory.release_test

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

# --- denials --------------------------------------------------------------------------------------------------

refused := {
	"of what expires now": {
		"candidate": [set_("/queue/expires_ns", now)],
		"says": {["MEM-W-405", "expired"]},
	},
	"of what has used up the life of a released record": {
		"candidate": [set_("/queue/created_ns", now - (365 * day))],
		"says": {["MEM-W-405", "expired"]},
	},
	"of what does not say when it was written": {
		"candidate": [gone("/queue/created_ns")],
		"says": {["MEM-W-405", "expired"], ["MEM-W-413", "review_malformed"]},
	},
	"of what does not say when it expires": {
		"candidate": [gone("/queue/expires_ns")],
		"says": {["MEM-W-405", "expired"], ["MEM-W-413", "review_malformed"]},
	},
	"of what expires in words": {
		"candidate": [set_("/queue/expires_ns", "never")],
		"says": {["MEM-W-405", "expired"], ["MEM-W-413", "review_malformed"]},
	},
	"of a kind that its source may not write": {
		"candidate": [set_("/kind", "session_summary")],
		"says": {["MEM-W-406", "combination_not_permitted"]},
	},
	"of a class that is gone": {
		"candidate": [set_("/memory_class", "archive")],
		"says": {
			["MEM-W-405", "expired"],
			["MEM-W-406", "combination_not_permitted"],
			["MEM-W-406", "no_trust"],
		},
	},
	"from a source that is trusted no longer": {
		"candidate": [set_("/source", "recall")],
		"says": {
			["MEM-W-405", "expired"],
			["MEM-W-406", "combination_not_permitted"],
			["MEM-W-406", "no_trust"],
		},
	},
	"of a fact without provenance": {
		"candidate": [set_("/provenance_known", false)],
		"says": {["MEM-W-406", "provenance_missing"]},
	},
	"of what is just too uncertain": {
		"candidate": [set_("/confidence_millionths", 499999)],
		"says": {["MEM-W-406", "confidence_below_floor"]},
	},
	"of what is a byte too large": {
		"candidate": [set_("/size_bytes", 65537)],
		"says": {["MEM-W-406", "too_large"]},
	},
	"of a fact with a password": {
		"candidate": [set_("/findings", [{"type": "secret.password", "field": "content"}])],
		"says": {["MEM-W-407", "secret_found"]},
	},
	"of a note with a password": {
		"candidate": [
			set_("/memory_class", "short_term"),
			set_("/kind", "working_note"),
			set_("/findings", [{"type": "secret.password", "field": "content"}]),
		],
		"says": {["MEM-W-407", "secret_found"]},
	},
	"over something better": {
		"candidate": [set_("/revision_mode", "replace"), set_("/replaces", head(3))],
		"says": {["MEM-W-408", "lower_trust_replaces_higher"]},
	},
	"over something that is better than what it was": {
		"candidate": [set_("/replaces", head(2)), set_("/queue/trust_rank", 1)],
		"says": {["MEM-W-408", "lower_trust_replaces_higher"]},
	},
	"over something without a rank": {
		"candidate": [set_("/replaces", {"record_id": "mem-0"})],
		"says": {["MEM-W-408", "lower_trust_replaces_higher"], ["MEM-W-413", "review_malformed"]},
	},
	"of what was derived from something that is gone": {
		"candidate": [set_("/lineage/known", false)],
		"says": {["MEM-W-409", "lineage_unknown"]},
	},
	"of what was derived from somebody else's": {
		"candidate": [set_("/lineage/subjects_match", false)],
		"says": {["MEM-W-409", "subject_mismatch"]},
	},
	"of what was forgotten meanwhile": {
		"candidate": [set_("/tombstoned", true)],
		"says": {["MEM-W-410", "forgotten_content"]},
	},
	"of what is active already": {
		"candidate": [set_("/queue/duplicate", true)],
		"says": {["MEM-W-411", "duplicate"]},
	},
	"of a system's key": {
		"candidate": [set_("/key", "System.prompt")],
		"says": {["MEM-W-412", "protected_key"]},
	},
	"of a protected key that is no identifier": {
		"candidate": [set_("/key", "hmac:00"), set_("/findings", [{"type": "key.protected", "field": "key"}])],
		"says": {["MEM-W-412", "protected_key"]},
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

# --- what is permitted ----------------------------------------------------------------------------------------

released := {
	"a fact, by a reviewer": {"trust": "medium", "days": 365},
	"a fact, by an operator": {"caller": [set_("/roles", ["operator"])], "trust": "medium", "days": 365},
	"about nobody in particular": {"candidate": [set_("/subject", null)], "trust": "medium", "days": 365},
	"without a key": {"candidate": [set_("/key", null)], "trust": "medium", "days": 365},
	"as certain as it must be": {
		"candidate": [set_("/confidence_millionths", 500000)],
		"trust": "medium",
		"days": 365,
	},
	"as large as it may be": {"candidate": [set_("/size_bytes", 65536)], "trust": "medium", "days": 365},
	"with the longest reason": {"review": [set_("/reason_chars", 500)], "trust": "medium", "days": 365},
	"with the shortest reason": {"review": [set_("/reason_chars", 1)], "trust": "medium", "days": 365},
	"with an attack quoted as the reason": {
		"review": [set_("/reason_findings", ["instruction.override"])],
		"trust": "medium",
		"days": 365,
	},
	"that expires in a moment": {
		"candidate": [set_("/queue/expires_ns", now + 1)],
		"trust": "medium",
		"days": 365,
	},
	"that never expires": {"candidate": [set_("/queue/expires_ns", null)], "trust": "medium", "days": 365},
	"with a moment left to live": {
		"candidate": [set_("/queue/created_ns", (now - (365 * day)) + 1)],
		"trust": "medium",
		"days": 365,
	},
	"nobody's agent did it": {
		"candidate": [set_("/queue/written_by/agent", null), set_("/queue/reviewer/agent", null)],
		"trust": "medium",
		"days": 365,
	},
	"by another agent": {
		"candidate": [set_("/queue/reviewer/agent", "hmac:checker")],
		"trust": "medium",
		"days": 365,
	},
	"a note of low trust": {
		"candidate": [
			set_("/memory_class", "short_term"),
			set_("/kind", "working_note"),
			set_("/source", "external_tool"),
			set_("/provenance_known", false),
			set_("/queue/trust_rank", 1),
		],
		"trust": "low",
		"days": 30,
	},
	"never above what it was": {"candidate": [set_("/queue/trust_rank", 1)], "trust": "low", "days": 365},
	"never above its parents": {"candidate": [set_("/lineage/min_trust_rank", 1)], "trust": "low", "days": 365},
	"never high again": {
		"candidate": [set_("/source", "trusted_profile"), set_("/queue/trust_rank", 3)],
		"trust": "medium",
		"days": 365,
	},
	"over something as good": {
		"candidate": [set_("/revision_mode", "replace"), set_("/replaces", head(2))],
		"trust": "medium",
		"days": 365,
	},
	"forgotten, and said anew by the person": {
		"candidate": [
			set_("/memory_class", "short_term"),
			set_("/kind", "working_note"),
			set_("/source", "user_input"),
			set_("/tombstoned", true),
		],
		"trust": "medium",
		"days": 30,
	},
	"a system's key, by an operator": {
		"caller": [set_("/roles", ["operator"])],
		"candidate": [set_("/key", "system.prompt")],
		"trust": "medium",
		"days": 365,
	},
	"a key of which the finding says nothing": {
		"candidate": [set_("/findings", [{"type": "rights.grant", "field": "key"}])],
		"trust": "medium",
		"days": 365,
	},
}

test_released[note] if {
	some note, case in released
	answer := decided(case)
	answer.deny == set()
	answer.allowed == [0]
	answer.quarantine == set()
	answer.obligations == set()
	answer.assign[0].trust_level == case.trust
	answer.assign[0].ttl_days == case.days
}

test_another_bound_of_trust_and_life if {
	bounds := {"review": {"released": {"trust_max": "low", "ttl_days_max": 11}}}
	other := object.union(settings, bounds)
	asked := {"operation": "release", "now_ns": now, "caller": reviewer, "candidates": [candidate], "review": why}
	answer := write.decision with input as asked with data.memory.settings as other
	answer.allowed == [0]
	answer.assign == [{"trust_level": "low", "retention": "long_term", "ttl_days": 11}]
}

test_several_are_judged_one_by_one if {
	other := json.patch(candidate, [set_("/queue/status", "active")])
	asked := {
		"operation": "release",
		"now_ns": now,
		"caller": reviewer,
		"candidates": [other, candidate],
		"review": why,
	}
	answer := write.decision with input as asked
	answer.allowed == [1]
	answer.assign[0] == {"trust_level": "low", "retention": "short_term", "ttl_days": 1}
	answer.assign[1].ttl_days == 365
	{row.index | some row in answer.deny} == {0}
}

test_a_write_is_no_review if {
	asked := {"operation": "write", "now_ns": now, "caller": reviewer, "candidates": [candidate], "review": why}
	answer := write.decision with input as asked
	reasons(answer.deny) == {"subject_mismatch"}
	answer.assign[0].ttl_days == 730
}

# The two ways to the same trust: what a write is given, and what a release is given where nothing else bounds it.
same := {sprintf("%s %v %v", [source, known, least]): {"patch": [
	set_("/memory_class", "short_term"),
	set_("/kind", "working_note"),
	set_("/source", source),
	set_("/provenance_known", known),
	set_("/lineage/min_trust_rank", least),
	set_("/queue/trust_rank", 3),
]} |
	some source, _ in settings.sources
	settings.sources[source].trust_max != "none"
	some known in [true, false]
	some least in [null, 1, 2, 3]
}

test_same[note] if {
	some note, case in same
	unbounded := object.union(settings, {"review": {"released": {"trust_max": "high"}}})
	asked := {
		"operation": "release",
		"now_ns": now,
		"caller": reviewer,
		"candidates": [json.patch(candidate, case.patch)],
		"review": why,
	}
	released_as := write.decision with input as asked with data.memory.settings as unbounded
	released_as.allowed == [0]
	plain := object.union(asked, {"operation": "write"})
	written := write.decision with input as plain with data.memory.settings as unbounded
	released_as.assign[0].trust_level == written.assign[0].trust_level
}
