# Releases and rejections are writes too. They have a policy of their own, so that an ordinary write, which is
# asked for far more often, pays nothing for it.
package memory.write

import data.memory.review

import future.keywords.not
import rego.v1

is_review if input.operation in {"release", "reject"}

# METADATA
# description: >-
#   The answer about a release or a rejection: what every change of memory must be, and what a review must be.
reviewed := {
	"allowed": [index | some index, _ in input.candidates; review_permitted; not review_denied[index]],
	"deny": review_denials,
	"quarantine": set(),
	"obligations": review.obligations,
	"assign": [object.get(review.released, index, least) | some index, _ in input.candidates],
	"policy": {"package": "memory.write", "version": version},
} if {
	least := {"trust_level": "low", "retention": "short_term", "ttl_days": 1}
}

review_denials := deny | review.deny

review_denied[denial.index] := true if some denial in review_denials

review_permitted if {
	settings_complete
	review.permitted
}
