# Queries and records of which a part is missing or of another type: nothing is permitted then, whatever it is.
package memory.read_test

import future.keywords.not
import rego.v1

texts := ["record_id", "tenant_id", "memory_class", "kind", "source", "provenance", "status"]

texts_or_null := ["subject", "key"]

flags := ["provenance_known", "outranked", "derived"]

# What each attribute of a record is not; of every type one, and of what borders on the right type the first and
# the last.
not_values[name] := [null, true, 0, [], ["a"], {}] if some name in texts

not_values[name] := [false, true, 0, 5, [], ["a"], {}] if some name in texts_or_null

not_values[name] := [null, 0, "", "true", [], {}] if some name in flags

not_values["trust_rank"] := [null, true, 0, 4, "", "high", [], {}]

not_values["confidence_millionths"] := [null, true, -1, 1000001, "", "1", [], {}]

not_values["created_ns"] := [null, false, true, "", "today", [], {}]

not_values["revision"] := [null, true, -1, 0, "", "1", [], {}]

not_values["expires_ns"] := [false, true, "", "never", [], {}]

values[name] := ["", "a", "x:y"] if some name in texts

values[name] := [null, "", "a"] if some name in texts_or_null

values[name] := [true, false] if some name in flags

values["trust_rank"] := [1, 2, 3]

values["confidence_millionths"] := [0, 1, 1000000]

values["created_ns"] := [-1, 0, 1, now_ns]

values["revision"] := [1, 2]

values["expires_ns"] := [null, -1, 0, 1, now_ns]

test_every_attribute_is_looked_at if {
	every name, _ in record {
		not_values[name]
		values[name]
	}
}

refused_records := {sprintf("%s is %v", [name, value]): set_(concat("/", ["", name]), value) |
	some name, list in not_values
	some value in list
}

test_refused_records[note] if {
	some note, patch in refused_records
	refused([json.patch(record, [patch])])
}

missing := {name: gone(concat("/", ["", name])) | some name, _ in record}

test_missing[name] if {
	some name, patch in missing
	refused([json.patch(record, [patch])])
}

usual_records := {sprintf("%s is %v", [name, value]): set_(concat("/", ["", name]), value) |
	some name, list in values
	some value in list
}

test_usual_records[note] if {
	some note, patch in usual_records
	decided([set_("/candidates", [json.patch(record, [patch])])]).allow == true
}

test_one_malformed_record_is_enough if {
	refused([record, json.patch(record, [gone("/key")]), record])
}

test_a_record_that_is_none_is_malformed[note] if {
	some note, value in a_record_that_is_none_is_malformed
	refused([value])
}

a_record_that_is_none_is_malformed := {"null": null, "a text": "mem-1", "a list": [], "a number": 5}

# Also where an operator looks at everything, and no other rule looks at a record.
refused(candidates) if {
	every query in [[], inspection] {
		answer := decided(array.concat(query, [set_("/candidates", candidates)]))
		answer.allow == false
		answer.admitted == []
		"MEM-R-112" in ids(answer.deny)
	}
}

# --- the query ---------------------------------------------------------------------------------------------

odd_queries := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path, list in {
		"/caller/anonymous": [null, 0, "no"],
		"/query/has_text": [null, 0, "no"],
		"/query/subject": [false, true, 0, 5],
		"/caller/roles": [[5], [null], [["operator"]], [{}], [[]], ["operator", 5]],
		"/query/kinds": [[5], [null], [[]]],
		"/query/sources": [[5], [null], [[]]],
		"/query/keys": [[5], [null], [[]]],
		"/query/record_ids": [[5], [null], [[]]],
		"/query/statuses": [[5], [null], [[]]],
	}
	some value in list
}

test_odd_queries[note] if {
	some note, patch in odd_queries
	not well_formed_after(patch)
}

unsaid_queries := {path: [gone(path)] |
	some path in ["/caller/anonymous", "/query/has_text", "/query/subject", "/query/statuses"]
}

test_unsaid_queries[path] if {
	some path, patch in unsaid_queries
	not well_formed_after(patch)
}

fine_queries := {sprintf("%s is %v", [path, value]): [set_(path, value)] |
	some path, list in {
		"/caller/anonymous": [true, false],
		"/query/has_text": [true, false],
		"/query/require_provenance": [true, false],
		"/query/subject": [null, "", "user-1"],
		"/query/allowed_classes": [null, [], ["profile"]],
		"/caller/roles": [[], [""], ["operator", "reader"]],
		"/now_ns": [1, now_ns],
	}
	some value in list
}

test_fine_queries[note] if {
	some note, patch in fine_queries
	well_formed_after(patch)
}
