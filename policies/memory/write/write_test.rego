# METADATA
# description: Cases for the write policy. Each names what is changed in an admitted candidate and which rules answer.
package memory.write_test

import data.memory.settings
import data.memory.write

import future.keywords.not
import rego.v1

caller := {
	"tenant_id": "tenant-a",
	"principal_id": "user-1",
	"subject": "user-1",
	"roles": [],
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
	"findings": [],
	"lineage": {"count": 0, "known": true, "min_trust_rank": null, "subjects_match": true},
	"replaces": null,
	"tombstoned": false,
}

set_(path, value) := {"op": "replace", "path": path, "value": value}

gone(path) := {"op": "remove", "path": path}

found(type, field) := set_("/findings", [{"type": type, "field": field}])

short_term := [set_("/memory_class", "short_term"), set_("/kind", "working_note")]

preference := [
	set_("/memory_class", "profile"),
	set_("/kind", "preference"),
	set_("/source", "user_input"),
]

heads := {"low": 1, "medium": 2, "high": 3}

head(level) := {"record_id": "mem-1", "trust_rank": heads[level], "revision": 1, "status": "active"}

# The answer for one candidate: what a case changes of the candidate, of the caller, and the operation.
decided(case) := answer if {
	asked := {
		"operation": object.get(case, "operation", "write"),
		"now_ns": 1790000000000000000,
		"caller": json.patch(caller, object.get(case, "caller", [])),
		"candidates": [json.patch(candidate, object.get(case, "candidate", []))],
	}
	answer := write.decision with input as asked
}

ids(rows) := {row.rule_id | some row in rows}

reasons(rows) := {row.reason | some row in rows}

# --- denials -----------------------------------------------------------------------------------------------

denied := {
	"another tenant": {"candidate": [set_("/tenant_id", "tenant-b")], "rules": {"MEM-W-101": "tenant_mismatch"}},
	"no tenant": {"candidate": [gone("/tenant_id")], "rules": {"MEM-W-101": "tenant_mismatch"}},
	"blank tenants agree and are still refused": {
		"caller": [set_("/tenant_id", "")],
		"candidate": [set_("/tenant_id", "")],
		"rules": {"MEM-W-121": "candidate_malformed"},
	},
	"no principal": {"caller": [set_("/principal_id", "")], "rules": {"MEM-W-102": "principal_missing"}},
	"a source that nobody registered": {
		"candidate": [set_("/source", "web_page")],
		"rules": {
			"MEM-W-103": "source_not_registered",
			"MEM-W-106": "combination_not_permitted",
		},
	},
	"what was recalled": {
		"candidate": array.concat(short_term, [set_("/source", "recall")]),
		"rules": {"MEM-W-104": "recall_write_back", "MEM-W-106": "combination_not_permitted"},
	},
	"an unknown class": {
		"candidate": [set_("/memory_class", "archive")],
		"rules": {"MEM-W-105": "class_unknown", "MEM-W-106": "combination_not_permitted"},
	},
	"a tool's word as a fact": {
		"candidate": [set_("/source", "external_tool")],
		"rules": {"MEM-W-106": "combination_not_permitted"},
	},
	"an unknown kind": {
		"candidate": [set_("/kind", "rumour")],
		"rules": {"MEM-W-106": "combination_not_permitted"},
	},
	"provenance unknown": {
		"candidate": [set_("/provenance_known", false)],
		"rules": {"MEM-W-107": "provenance_missing"},
	},
	"just too uncertain": {
		"candidate": [set_("/confidence_millionths", 499999)],
		"rules": {"MEM-W-108": "confidence_below_floor"},
	},
	"medium replaces high": {
		"candidate": [set_("/revision_mode", "replace"), set_("/replaces", head("high"))],
		"rules": {"MEM-W-109": "lower_trust_replaces_higher"},
	},
	"a derived candidate replaces better": {
		"candidate": [
			set_("/source", "trusted_profile"),
			set_("/lineage/min_trust_rank", 1),
			set_("/replaces", head("medium")),
		],
		"rules": {"MEM-W-109": "lower_trust_replaces_higher"},
	},
	"a head without a rank": {
		"candidate": [set_("/replaces", {"record_id": "mem-1"})],
		"rules": {"MEM-W-109": "lower_trust_replaces_higher", "MEM-W-121": "candidate_malformed"},
	},
	"a system's key": {"candidate": [set_("/key", "system.prompt")], "rules": {"MEM-W-110": "protected_key"}},
	"a policy's key": {"candidate": [set_("/key", "Policy.read")], "rules": {"MEM-W-110": "protected_key"}},
	"a security key": {"candidate": [set_("/key", "SECURITY.level")], "rules": {"MEM-W-110": "protected_key"}},
	"a role's key": {"candidate": [set_("/key", "role.admin")], "rules": {"MEM-W-110": "protected_key"}},
	"a protected key that is no identifier": {
		"candidate": array.concat(short_term, [set_("/key", "hmac:00"), found("key.protected", "key")]),
		"rules": {"MEM-W-110": "protected_key"},
	},
	"a byte too large": {"candidate": [set_("/size_bytes", 65537)], "rules": {"MEM-W-111": "too_large"}},
	"a secret in long_term": {
		"candidate": [found("secret.aws_key", "content")],
		"rules": {"MEM-W-112": "secret_in_durable_class"},
	},
	"a secret in a key": {
		"candidate": array.concat(short_term, [found("secret.password", "key")]),
		"rules": {"MEM-W-112": "secret_in_durable_class"},
	},
	"an anonymous caller": {
		"caller": [set_("/anonymous", true)],
		"rules": {"MEM-W-113": "anonymous_durable_write"},
	},
	"a preference without the curator": {"candidate": preference, "rules": {"MEM-W-114": "curator_required"}},
	"a language preference by the agent": {
		"candidate": array.concat(preference, [
			set_("/memory_class", "long_term"),
			set_("/kind", "language_preference"),
			set_("/source", "agent_authored"),
		]),
		"rules": {"MEM-W-114": "curator_required"},
	},
	"an inference without the curator": {
		"candidate": array.concat(preference, [set_("/source", "inferred_preference")]),
		"rules": {"MEM-W-114": "curator_required"},
	},
	"forgotten, and inferred anew": {
		"caller": [set_("/roles", ["curator"])],
		"candidate": array.concat(preference, [set_("/source", "inferred_preference"), set_("/tombstoned", true)]),
		"rules": {"MEM-W-117": "forgotten_content"},
	},
	"an unknown origin": {"candidate": [set_("/lineage/known", false)], "rules": {"MEM-W-115": "lineage_unknown"}},
	"one of two origins has expired": {
		"candidate": [set_("/lineage", {"count": 2, "known": false, "min_trust_rank": 3, "subjects_match": true})],
		"rules": {"MEM-W-115": "lineage_unknown"},
	},
	"another subject": {"candidate": [set_("/subject", "user-2")], "rules": {"MEM-W-116": "subject_mismatch"}},
	"derived from another subject": {
		"caller": [set_("/roles", ["curator"])],
		"candidate": [set_("/lineage/subjects_match", false)],
		"rules": {"MEM-W-116": "subject_mismatch"},
	},
	"what was forgotten": {
		"candidate": [set_("/tombstoned", true)],
		"rules": {"MEM-W-117": "forgotten_content"},
	},
	"an unknown way of revising": {
		"candidate": [set_("/revision_mode", "upsert")],
		"rules": {"MEM-W-118": "revision_mode_unknown"},
	},
	"an unknown operation": {"operation": "merge", "rules": {"MEM-W-119": "operation_unknown"}},
	"removing another's records": {
		"operation": "delete",
		"candidate": [set_("/subject", "user-2")],
		"rules": {"MEM-W-120": "erasure_not_permitted"},
	},
	"removing as a curator": {
		"operation": "delete",
		"caller": [set_("/roles", ["curator"])],
		"candidate": [set_("/subject", "user-2")],
		"rules": {"MEM-W-120": "erasure_not_permitted"},
	},
	"removing anonymously": {
		"operation": "delete",
		"caller": [set_("/anonymous", true)],
		"rules": {"MEM-W-120": "erasure_not_permitted"},
	},
	"removing in another tenant": {
		"operation": "delete",
		"candidate": [set_("/tenant_id", "tenant-b")],
		"rules": {"MEM-W-101": "tenant_mismatch"},
	},
	"removing nobody's records": {
		"operation": "delete",
		"candidate": [gone("/subject")],
		"rules": {"MEM-W-120": "erasure_not_permitted", "MEM-W-121": "candidate_malformed"},
	},
	"a caller whose anonymity is not known": {
		"caller": [gone("/anonymous")],
		"candidate": short_term,
		"rules": {"MEM-W-121": "candidate_malformed"},
	},
	"a finding without a type": {
		"candidate": [set_("/findings", [{"field": "content"}])],
		"rules": {"MEM-W-121": "candidate_malformed"},
	},
	"confidence as a text": {
		"candidate": [set_("/confidence_millionths", "900000")],
		"rules": {"MEM-W-121": "candidate_malformed"},
	},
	"several at once": {
		"candidate": [set_("/provenance_known", false), set_("/size_bytes", 70000)],
		"rules": {"MEM-W-107": "provenance_missing", "MEM-W-111": "too_large"},
	},
}

test_denied[note] if {
	some note, case in denied
	answer := decided(case)
	answer.allowed == []
	ids(answer.deny) == object.keys(case.rules)
	reasons(answer.deny) == {reason | some reason in case.rules}
	count(answer.assign) == 1
}

test_an_empty_input_is_not_allowed if {
	answer := write.decision with input as {}
	answer.allowed == []
}

test_candidates_that_are_no_list_are_not_allowed if {
	asked := {"operation": "write", "now_ns": 1790000000000000000, "caller": caller, "candidates": {"a": candidate}}
	answer := write.decision with input as asked
	answer.allowed == []
}

# Settings without which nothing is admitted, one at a time.
settings_needed := {name: object.remove(settings, [name]) | some name in {
	"classes",
	"conversation",
	"limits",
	"permitted",
	"protected_keys",
	"revision_modes",
	"sources",
}}

test_settings_needed[name] if {
	some name, left in settings_needed
	asked := {"operation": "write", "now_ns": 1790000000000000000, "caller": caller, "candidates": [candidate]}
	answer := write.decision with input as asked with data.memory.settings as left
	answer.allowed == []
}

test_without_settings_the_version_is_unknown if {
	asked := {"operation": "write", "now_ns": 1790000000000000000, "caller": caller, "candidates": [candidate]}
	answer := write.decision with input as asked with data.memory.settings as {}
	answer.allowed == []
	answer.policy.version == "unknown"
}

# What a rule relies on: with any of it missing the candidate is refused.
needed := {name | some name, _ in candidate} - {"provenance", "content_digest", "language"}

missed := {name: [gone(concat("/", ["", name]))] | some name in needed}

test_missed[name] if {
	some name, patch in missed
	decided({"candidate": patch}).allowed == []
}

# --- what is admitted --------------------------------------------------------------------------------------

admitted := {
	"a fact from a service": {"trust": "medium"},
	"about nobody in particular": {"candidate": [set_("/subject", null)], "trust": "medium"},
	"without a key": {"candidate": [set_("/key", null)], "trust": "medium"},
	"as certain as it must be": {"candidate": [set_("/confidence_millionths", 500000)], "trust": "medium"},
	"as large as it may be": {"candidate": [set_("/size_bytes", 65536)], "trust": "medium"},
	"an uncertain note": {
		"candidate": array.concat(short_term, [set_("/confidence_millionths", 0)]),
		"trust": "medium",
	},
	"a note without provenance is of low trust": {
		"candidate": array.concat(short_term, [set_("/provenance_known", false), set_("/source", "trusted_profile")]),
		"trust": "low",
	},
	"an anonymous note": {"caller": [set_("/anonymous", true)], "candidate": short_term, "trust": "medium"},
	"a tool's note": {
		"candidate": array.concat(short_term, [set_("/source", "external_tool")]),
		"trust": "low",
	},
	"derived from something of low trust": {"candidate": [set_("/lineage/min_trust_rank", 1)], "trust": "low"},
	"derived from something of high trust": {"candidate": [set_("/lineage/min_trust_rank", 3)], "trust": "medium"},
	"medium replaces medium": {
		"candidate": [set_("/revision_mode", "replace"), set_("/replaces", head("medium"))],
		"trust": "medium",
	},
	"an operator writes a system's key": {
		"caller": [set_("/roles", ["operator"])],
		"candidate": [set_("/key", "system.prompt")],
		"trust": "medium",
	},
	"a key that only looks like one": {"candidate": [set_("/key", "systems.list")], "trust": "medium"},
	"a preference by the curator": {
		"caller": [set_("/roles", ["curator"])],
		"candidate": preference,
		"trust": "medium",
	},
	"a preference for a short while": {
		"candidate": array.concat(preference, [set_("/memory_class", "short_term")]),
		"trust": "medium",
	},
	"a confirmed preference": {
		"candidate": array.concat(preference, [set_("/source", "user_confirmed_preference")]),
		"trust": "high",
	},
	"a curator about another subject": {
		"caller": [set_("/roles", ["curator"])],
		"candidate": [set_("/subject", "user-2")],
		"trust": "medium",
	},
	"an operator about another subject": {
		"caller": [set_("/roles", ["operator"])],
		"candidate": [set_("/subject", "user-2")],
		"trust": "medium",
	},
	"forgotten, and said anew by the person": {
		"candidate": array.concat(short_term, [set_("/tombstoned", true), set_("/source", "user_input")]),
		"trust": "medium",
	},
	"a finding that no rule is about": {"candidate": [found("other.thing", "content")], "trust": "medium"},
}

test_admitted[note] if {
	some note, case in admitted
	answer := decided(case)
	answer.allowed == [0]
	answer.deny == set()
	answer.quarantine == set()
	answer.obligations == set()
	answer.assign[0].trust_level == case.trust
}

erased := {
	"one's own": {"operation": "delete"},
	"another's as an operator": {
		"operation": "delete",
		"caller": [set_("/roles", ["operator"])],
		"candidate": [set_("/subject", "user-2")],
	},
	"another's as a privacy officer": {
		"operation": "delete",
		"caller": [set_("/roles", ["privacy_officer"])],
		"candidate": [set_("/subject", "user-2")],
	},
}

test_erased[note] if {
	some note, case in erased
	answer := decided(case)
	answer.allowed == [0]
	answer.deny == set()
}

# Every class, kind and source: admitted where the settings say so, refused everywhere else.
kinds := {kind | some _, permitted in settings.permitted; some kind, _ in permitted}

combinations := {sprintf("%s %s %s", [memory_class, kind, source]): {
	"caller": [set_("/roles", ["curator"])],
	"candidate": [set_("/memory_class", memory_class), set_("/kind", kind), set_("/source", source)],
	"permitted": object.get(settings.permitted, [memory_class, kind, source], false),
	"trust": settings.sources[source].trust_max,
	"retention": settings.classes[memory_class].retention,
} |
	some memory_class, _ in settings.classes
	some kind in kinds
	some source, _ in settings.sources
}

test_combinations[note] if {
	some note, case in combinations
	answer := decided(case)
	as_settings_say(case, answer)
}

as_settings_say(case, answer) if {
	case.permitted
	answer.allowed == [0]
	given := {"trust_level": case.trust, "retention": case.retention.value, "ttl_days": case.retention.ttl_days}
	answer.assign == [given]
}

as_settings_say(case, answer) if {
	not case.permitted
	"MEM-W-106" in ids(answer.deny)
}

test_a_note_may_come_from_any_source_but_recall if {
	sources := {source | some source, _ in settings.permitted.short_term.working_note}
	sources == object.keys(settings.sources) - {"recall"}
}

# --- quarantine and redaction ------------------------------------------------------------------------------

held_back := {
	"an instruction": {"type": "instruction.override", "rules": {"MEM-W-201": "instruction_like"}},
	"a change of rights": {"type": "rights.grant", "rules": {"MEM-W-202": "rights_change"}},
	"a way out for data": {"type": "exfiltration.send", "rules": {"MEM-W-203": "exfiltration"}},
}

test_held_back[note] if {
	some note, case in held_back
	answer := decided({"candidate": [found(case.type, "content")]})
	answer.allowed == [0]
	ids(answer.quarantine) == object.keys(case.rules)
	reasons(answer.quarantine) == {reason | some reason in case.rules}
}

test_a_secret_in_a_note_is_redacted if {
	findings := [
		{"type": "secret.password", "field": "content"},
		{"type": "instruction.override", "field": "content"},
		{"type": "secret.aws_key", "field": "summary"},
	]
	answer := decided({"candidate": array.concat(short_term, [set_("/findings", findings)])})
	answer.allowed == [0]
	answer.obligations == {{
		"index": 0,
		"type": "redact",
		"rule_id": "MEM-W-301",
		"findings": ["secret.password", "secret.aws_key"],
	}}
}

test_each_candidate_is_judged_and_given_its_own if {
	other := json.patch(candidate, [set_("/tenant_id", "tenant-b")])
	odd := json.patch(candidate, [gone("/memory_class")])
	note := json.patch(candidate, short_term)
	asked := {"operation": "write", "now_ns": 1790000000000000000, "caller": caller, "candidates": [candidate, odd, other, note]}
	answer := write.decision with input as asked
	answer.allowed == [0, 3]
	[one.retention | some one in answer.assign] == ["long_term", "short_term", "long_term", "short_term"]
}
