# Where each bound of the release policy lies.
package memory.release_test

import data.memory.release
import data.memory.settings

import rego.v1

test_what_expires_at_no_time_is_not_released if {
	answer := decided({"candidate": [set_("/queue/expires_ns", "")]})
	said(answer.deny) == {["MEM-W-405", "expired"], ["MEM-W-413", "review_malformed"]}
}

test_an_operator_releases_a_protected_key_that_is_no_identifier if {
	answer := decided({
		"caller": [set_("/roles", ["operator", "reviewer"])],
		"candidate": [
			set_("/key", "hmac:00"),
			set_("/findings", [{"type": "key.protected", "field": "key"}]),
		],
	})
	ids(answer.deny) == set()
	answer.allowed == [0]
}

# A key that is no text is refused for its form; as a prefix it is not read.
test_a_list_is_no_key if {
	answer := decided({"candidate": [set_("/key", [])]})
	ids(answer.deny) == {"MEM-W-413"}
}

# Even where every key is protected, no key is none.
test_a_blank_key_is_protected_by_nothing if {
	all_keys := object.union(settings, {"protected_keys": {"prefixes": [""]}})
	asked := {
		"operation": "release",
		"now_ns": now,
		"caller": reviewer,
		"candidates": [json.patch(candidate, [set_("/key", "")]), candidate],
		"review": why,
	}
	denials := release.deny with input as asked with data.memory.settings as all_keys
	[denial.index | some denial in denials; denial.rule_id == "MEM-W-412"] == [1]
}
