# The steps of a review are writes too: releases, rejections, and what reviewers put into quarantine. They have a
# policy of their own, so that an ordinary write, which is asked for far more often, pays nothing for it.
package memory.write

import data.memory.release
import data.memory.review

import future.keywords.not
import rego.v1

is_review if input.operation in {"release", "reject", "quarantine"}

# METADATA
# description: >-
#   The answer about a step of a review: what every change of memory must be, and what a review must be.
reviewed := {
	"allowed": [index |
		review_permitted
		some index, _ in input.candidates
		not refused[index]
	],
	"deny": denials,
	"quarantine": set(),
	"obligations": obliged,
	"assign": [object.get(given, index, least) | some index, _ in input.candidates],
	"policy": {"package": "memory.write", "version": version},
} if {
	denials := (deny | review.deny) | release.deny
	refused := {denial.index: true | some denial in denials}
	obliged := review.obligations
	given := release.released
	least := {"trust_level": "low", "retention": "short_term", "ttl_days": 1}
}

review_permitted if {
	settings_complete
	review.permitted
}
