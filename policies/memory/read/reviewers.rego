# What a reviewer sees beside everybody else: the review queue of its own tenant.
package memory.read

import data.memory.settings

import future.keywords.not
import rego.v1

# METADATA
# description: >-
#   Whoever releases and rejects looks at what waits in quarantine in its own tenant, whoever that is about, and
#   at nothing else.
inspecting if {
	input.operation == "inspect"
	input.query.statuses != []
	not other_status_asked_for
	input.query.purpose == settings.inspection_purpose
	input.query.tenant_id == input.caller.tenant_id
	some role in input.caller.roles
	settings.review.roles[role]
}

other_status_asked_for if {
	some status in input.query.statuses
	status != "quarantined"
}
