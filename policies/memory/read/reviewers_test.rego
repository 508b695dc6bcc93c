# METADATA
# description: What a reviewer may look at. Each case says what is changed in a look at the review queue.
package memory.read_reviewers_test

import data.memory.read
import data.memory.settings

import rego.v1

look := {
	"operation": "inspect",
	"now_ns": 1790000000000000000,
	"caller": {
		"tenant_id": "tenant-a",
		"principal_id": "ada",
		"subject": "ada",
		"roles": ["reviewer"],
		"anonymous": false,
	},
	"query": {
		"tenant_id": "tenant-a",
		"principal_id": "ada",
		"purpose": "inspection",
		"allowed_classes": null,
		"limit": 1000,
		"trust_min_rank": null,
		"max_age_days": null,
		"require_provenance": false,
		"subject": null,
		"kinds": [],
		"sources": [],
		"keys": [],
		"record_ids": [],
		"statuses": ["quarantined"],
		"has_text": false,
	},
	"candidates": [],
}

waiting := {
	"record_id": "mem-1",
	"tenant_id": "tenant-a",
	"subject": "user-1",
	"memory_class": "long_term",
	"kind": "validated_fact",
	"key": null,
	"source": "trusted_service",
	"provenance": "service_rule",
	"provenance_known": true,
	"trust_rank": 2,
	"confidence_millionths": 900000,
	"created_ns": 1789000000000000000,
	"expires_ns": null,
	"status": "quarantined",
	"revision": 1,
	"outranked": false,
	"derived": false,
}

set_(path, value) := {"op": "replace", "path": path, "value": value}

ids(rows) := {row.rule_id | some row in rows}

# What is considered is another's wall: by their rules reviewers see records of any subject, in quarantine only.
shown := {
	"a record about somebody": {"record": []},
	"a record about nobody": {"record": [set_("/subject", null)]},
	"an expired record": {"record": [set_("/expires_ns", 1)]},
}

test_shown[note] if {
	some note, case in shown
	asked := json.patch(look, [set_("/candidates", [json.patch(waiting, case.record)])])
	answer := read.decision with input as asked
	answer.allow == true
	answer.admitted == [0]
}

hidden := {
	"an active record": {"record": [set_("/status", "active")], "because": {"status_not_selected"}},
	"a record of another tenant": {"record": [set_("/tenant_id", "tenant-b")], "because": {"tenant_wall"}},
}

test_hidden[note] if {
	some note, case in hidden
	asked := json.patch(look, [set_("/candidates", [json.patch(waiting, case.record)])])
	answer := read.decision with input as asked
	answer.allow == true
	answer.admitted == []
	{row.reason | some row in answer.excluded} == case.because
}

refused := {
	"whatever its status": {"patch": [set_("/query/statuses", [])], "rules": {"MEM-R-108"}},
	"active records too": {"patch": [set_("/query/statuses", ["quarantined", "active"])], "rules": {"MEM-R-108"}},
	"superseded records": {"patch": [set_("/query/statuses", ["superseded"])], "rules": {"MEM-R-108"}},
	"all tenants": {"patch": [set_("/query/tenant_id", null)], "rules": {"MEM-R-101", "MEM-R-108"}},
	"another tenant": {"patch": [set_("/query/tenant_id", "tenant-b")], "rules": {"MEM-R-101", "MEM-R-108"}},
	"for another purpose": {"patch": [set_("/query/purpose", "compliance_review")], "rules": {"MEM-R-108"}},
	"by somebody unknown": {"patch": [set_("/caller/anonymous", true)], "rules": {"MEM-R-108"}},
	"with roles that are no list": {"patch": [set_("/caller/roles", {"reviewer": "reviewer"})], "rules": {"MEM-R-108"}},
	"with another role": {"patch": [set_("/caller/roles", ["curator"])], "rules": {"MEM-R-108"}},
}

test_refused[note] if {
	some note, case in refused
	asked := json.patch(look, case.patch)
	answer := read.decision with input as asked
	answer.allow == false
	case.rules == ids(answer.deny) & {"MEM-R-101", "MEM-R-108"}
}

test_a_search_is_no_look_at_the_queue if {
	asked := json.patch(look, [
		set_("/operation", "search"),
		set_("/query/allowed_classes", ["long_term"]),
		set_("/query/limit", 5),
		set_("/candidates", [waiting]),
	])
	answer := read.decision with input as asked
	answer.admitted == []
	"MEM-R-002" in ids(answer.excluded)
}

test_without_roles_in_the_settings_nobody_reviews if {
	left := json.patch(settings, [{"op": "remove", "path": "/review"}])
	answer := read.decision with input as look with data.memory.settings as left
	answer.allow == false
	"MEM-R-108" in ids(answer.deny)
}
