# What the settings register, written out as users rely on it: who may write what, what trust it gets, how long it
# is kept. All combinations are asked about at once, as one write of many candidates.
package memory.write_test

import data.memory.write

import rego.v1

trust_by_source := {
	"trusted_profile": "high",
	"user_confirmed_preference": "high",
	"trusted_service": "medium",
	"user_input": "medium",
	"approved_summarizer": "medium",
	"session_state": "low",
	"inferred_preference": "medium",
	"agent_authored": "low",
	"external_tool": "low",
	"recall": "none",
}

kept_by_class := {
	"short_term": {"retention": "short_term", "ttl_days": 30},
	"long_term": {"retention": "long_term", "ttl_days": 730},
	"profile": {"retention": "long_term", "ttl_days": 730},
}

preferring := ["trusted_profile", "user_confirmed_preference", "user_input", "agent_authored"]

# What was concluded of a person lasts in the profile only, where he can see and remove it.
concluding := array.concat(preferring, ["inferred_preference"])

registered := {
	"short_term": {
		"working_note": [
			"trusted_profile", "user_confirmed_preference", "trusted_service", "user_input",
			"approved_summarizer", "session_state", "inferred_preference", "agent_authored", "external_tool",
		],
		"session_summary": ["approved_summarizer", "agent_authored", "session_state", "trusted_service"],
		"conversation": ["user_input", "agent_authored", "session_state", "trusted_service"],
		"preference": ["session_state", "user_input", "user_confirmed_preference", "trusted_profile"],
		"language_preference": ["session_state", "user_input", "user_confirmed_preference", "trusted_profile"],
		"validated_fact": ["trusted_service", "trusted_profile", "user_confirmed_preference"],
		"profile_snapshot": [],
	},
	"long_term": {
		"working_note": [],
		"session_summary": ["approved_summarizer"],
		"conversation": ["user_input", "trusted_service", "approved_summarizer", "agent_authored"],
		"preference": preferring,
		"language_preference": preferring,
		"validated_fact": ["trusted_service", "trusted_profile", "user_confirmed_preference"],
		"profile_snapshot": [],
	},
	"profile": {
		"working_note": [],
		"session_summary": [],
		"conversation": [],
		"preference": concluding,
		"language_preference": concluding,
		"validated_fact": [],
		"profile_snapshot": ["trusted_profile", "trusted_service"],
	},
}

offered := [json.patch(candidate, [
	set_("/memory_class", memory_class),
	set_("/kind", kind),
	set_("/source", source),
]) |
	some memory_class, kinds_of in registered
	some kind, _ in kinds_of
	some source, _ in trust_by_source
]

# What comes of candidates that a curator offers together.
offers(candidates) := answer if {
	asked := {
		"operation": "write",
		"now_ns": 1790000000000000000,
		"caller": json.patch(caller, [set_("/roles", ["curator"])]),
		"candidates": candidates,
	}
	answer := write.decision with input as asked
}

refusals(answer, rule_id) := {denial.index | some denial in answer.deny; denial.rule_id == rule_id}

test_who_may_write_what if {
	answer := offers(offered)
	fitting := [index |
		some index, one in offered
		one.source in registered[one.memory_class][one.kind]
	]
	answer.allowed == fitting
	refusals(answer, "MEM-W-106") == {index | some index, _ in offered} - {index | some index in fitting}
}

test_what_each_is_given if {
	answer := offers(offered)
	wrong := [one |
		some index in answer.allowed
		one := offered[index]
		given := object.union(kept_by_class[one.memory_class], {"trust_level": trust_by_source[one.source]})
		answer.assign[index] != given
	]
	count(answer.allowed) > 40
	wrong == []
}

# --- who may say again what was forgotten ------------------------------------------------------------------

test_who_may_say_again_what_was_forgotten if {
	notes := [json.patch(candidate, array.concat(short_term, [set_("/source", source), set_("/tombstoned", true)])) |
		some source, _ in trust_by_source
	]
	answer := offers(notes)
	anew := {notes[index].source | some index in answer.allowed}
	anew == {"user_confirmed_preference", "user_input", "trusted_profile"}
	refusals(answer, "MEM-W-117") == {index | some index, note in notes; not note.source in anew}
}

# --- where a secret can be redacted ------------------------------------------------------------------------

test_where_a_secret_can_be_redacted if {
	fields := ["content", "summary", "title", "key", "provenance", "source_id"]
	notes := [json.patch(candidate, array.concat(short_term, [found("secret.password", field)])) | some field in fields]
	answer := offers(notes)
	[fields[index] | some index in answer.allowed] == ["content", "summary", "title"]
	refusals(answer, "MEM-W-112") == {3, 4, 5}
}

# --- how certain a record must be --------------------------------------------------------------------------

snapshot := [
	set_("/memory_class", "profile"),
	set_("/kind", "profile_snapshot"),
	set_("/source", "trusted_service"),
]

# Class by class one candidate that is certain enough, and one that is not.
certain := {
	"long_term": {"patch": [], "least": 500000},
	"profile": {"patch": snapshot, "least": 500000},
	"short_term": {"patch": short_term, "least": 0},
}

test_certain[name] if {
	some name, case in certain
	enough := json.patch(candidate, array.concat(case.patch, [set_("/confidence_millionths", case.least)]))
	too_little := json.patch(candidate, array.concat(case.patch, [set_("/confidence_millionths", case.least - 1)]))
	answer := offers([enough, too_little])
	answer.allowed == [0]
	refusals(answer, "MEM-W-108") == {1}
}

# --- who has which role ------------------------------------------------------------------------------------

other := [set_("/subject", "user-2")]

system_key := [set_("/key", "system.prompt")]

protected_digest := [set_("/key", "hmac:00"), found("key.protected", "key")]

# A role, what is asked for with it, and the rules that refuse.
by_role := {
	"a curator's preference": {"role": "curator", "candidate": preference, "rules": set()},
	"an operator's preference": {"role": "operator", "candidate": preference, "rules": {"MEM-W-114"}},
	"another role's preference": {"role": "guest", "candidate": preference, "rules": {"MEM-W-114"}},
	"a curator about another": {"role": "curator", "candidate": other, "rules": set()},
	"an operator about another": {"role": "operator", "candidate": other, "rules": set()},
	"a privacy officer about another": {"role": "privacy_officer", "candidate": other, "rules": {"MEM-W-116"}},
	"another role about another": {"role": "guest", "candidate": other, "rules": {"MEM-W-116"}},
	"an operator's system key": {"role": "operator", "candidate": system_key, "rules": set()},
	"a curator's system key": {"role": "curator", "candidate": system_key, "rules": {"MEM-W-110"}},
	"another role's system key": {"role": "guest", "candidate": system_key, "rules": {"MEM-W-110"}},
	"an operator's protected key that is no identifier": {
		"role": "operator",
		"candidate": protected_digest,
		"rules": set(),
	},
	"another role's protected key that is no identifier": {
		"role": "guest",
		"candidate": protected_digest,
		"rules": {"MEM-W-110"},
	},
	"a conversation is no preference": {
		"role": "guest",
		"candidate": [set_("/kind", "conversation"), set_("/source", "user_input")],
		"rules": set(),
	},
}

test_by_role[note] if {
	some note, case in by_role
	answer := decided({"caller": [set_("/roles", [case.role])], "candidate": case.candidate})
	ids(answer.deny) == case.rules
	answer.allowed == [index | some index in [0]; case.rules == set()]
}

erasing := {
	"an operator": {"role": "operator", "subject": "user-2", "rules": set()},
	"a privacy officer": {"role": "privacy_officer", "subject": "user-2", "rules": set()},
	"a curator": {"role": "curator", "subject": "user-2", "rules": {"MEM-W-120"}},
	"another role": {"role": "guest", "subject": "user-2", "rules": {"MEM-W-120"}},
	"an operator, of nobody": {"role": "operator", "subject": null, "rules": {"MEM-W-120"}},
	"an operator, of a blank subject": {"role": "operator", "subject": "", "rules": {"MEM-W-120"}},
	"an operator, of a list": {"role": "operator", "subject": [], "rules": {"MEM-W-121"}},
}

# What repeats another record, which stays.
repeating := {
	"of nobody": {"subject": null, "said": true, "anonymous": false, "rules": set()},
	"of oneself": {"subject": "user-1", "said": true, "anonymous": false, "rules": set()},
	"of another": {"subject": "user-2", "said": true, "anonymous": false, "rules": {"MEM-W-120"}},
	"anonymously": {"subject": null, "said": true, "anonymous": true, "rules": {"MEM-W-120"}},
	"not said": {"subject": null, "said": false, "anonymous": false, "rules": {"MEM-W-120"}},
	"of oneself, not said": {"subject": "user-1", "said": false, "anonymous": false, "rules": set()},
	"of oneself, said null": {"subject": "user-1", "said": null, "anonymous": false, "rules": {"MEM-W-121"}},
	"of oneself, said as a text": {"subject": "user-1", "said": "true", "anonymous": false, "rules": {"MEM-W-121"}},
	"of oneself, said as a list": {"subject": "user-1", "said": [null], "anonymous": false, "rules": {"MEM-W-121"}},
	"of oneself, said as an object": {"subject": "user-1", "said": {}, "anonymous": false, "rules": {"MEM-W-121"}},
}

test_repeating[note] if {
	some note, case in repeating
	answer := decided({
		"operation": "delete",
		"caller": [set_("/anonymous", case.anonymous)],
		"candidate": [set_("/subject", case.subject), {"op": "add", "path": "/repeats", "value": case.said}],
	})
	ids(answer.deny) == case.rules
}

test_erasing[note] if {
	some note, case in erasing
	answer := decided({
		"operation": "delete",
		"caller": [set_("/roles", [case.role])],
		"candidate": [set_("/subject", case.subject)],
	})
	ids(answer.deny) == case.rules
	answer.allowed == [index | some index in [0]; case.rules == set()]
}
