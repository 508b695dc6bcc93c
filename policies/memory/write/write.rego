# METADATA
# title: Memory write policy
# description: >-
#   Decides on each record that a caller wants to keep, or on the subject whose records it wants removed. What
#   is kept gets its trust and its retention here; what a writer claims of either counts for nothing.
# scope: subpackages
# schemas:
#   - input: schema["policy_write_input.schema"]
#   - data.memory.settings: schema["policy_settings.schema"]
package memory.write

import data.memory.settings

import future.keywords.not
import rego.v1

# METADATA
# title: The decision of a write
# description: The one document that is asked for. Always defined; only an index in `allowed` may be carried out.
# entrypoint: true
decision := {
	"allowed": allowed,
	"deny": deny,
	"quarantine": quarantine,
	"obligations": obligations,
	"assign": assignments,
	"policy": {"package": "memory.write", "version": version},
} if {
	not is_review
}

decision := reviewed if is_review

default version := "unknown"

version := settings.version

default allowed := []

# INVARIANT: an allow list and a deny set together, so that what nothing permits is refused.
allowed := [index |
	refused := denied
	some index, _ in input.candidates
	not refused[index]
] if {
	permitted
}

denied[denial.index] := true if some denial in deny

permitted if {
	input.operation in {"write", "delete"}
	input.candidates >= []
	input.candidates < {}
	settings_complete
}

# A rule whose setting is missing could not fire; so nothing is permitted without all of them.
settings_complete if {
	all := settings
	all.sources
	all.classes
	all.permitted
	all.protected_keys.prefixes
	all.limits.size_bytes_max
	all.conversation.kinds
	all.conversation.sources
	all.revision_modes
}

# --- what a kept record is given ---------------------------------------------------------------------------

# METADATA
# description: >-
#   Trust and retention for each candidate, in the order of the candidates. What is refused anyway may have
#   none of its own, as a removal has none, and then stands there with the least of both.
assignments := [object.get(given, index, least) |
	given := assigned
	least := {"trust_level": "low", "retention": "short_term", "ttl_days": 1}
	some index, _ in input.candidates
]

assigned[index] := {"trust_level": level, "retention": kept.value, "ttl_days": kept.ttl_days} if {
	ranks := trust_ranks
	classes := settings.classes
	levels := {1: "low", 2: "medium", 3: "high"}
	some index, candidate in input.candidates
	rank := ranks[index]
	level := levels[rank]
	class := classes[candidate.memory_class]
	kept := class.retention
}

# METADATA
# description: >-
#   Rank of the trust that each candidate is given: the least of what its source can reach, what unproven
#   provenance can reach, and the trust of whatever it was derived from. Lookups go one step at a time: a chain
#   of two computed ones costs the embedded engine ten times as much.
trust_ranks[index] := min([source_rank, proof_rank, lineage_rank]) if {
	source_ranks := source_trust
	levels := settings.trust_ranks
	proof := {true: levels.high, false: levels[settings.unproven_trust_max]}
	unbounded := {null: levels.high, 1: levels.low, 2: levels.medium, 3: levels.high}
	some index, candidate in input.candidates
	source_rank := source_ranks[candidate.source]
	proof_rank := proof[candidate.provenance_known]
	lineage_rank := unbounded[candidate.lineage.min_trust_rank]
}

source_trust := {name: rank |
	ranks := settings.trust_ranks
	some name, source in settings.sources
	rank := ranks[source.trust_max]
}
