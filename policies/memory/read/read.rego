# METADATA
# title: Memory read policy
# description: >-
#   Decides whether a caller may run a query over memory. The answer also carries a plan, which says what
#   records the query may see and which the store carries out, and a verdict on each record handed in.
# scope: subpackages
# schemas:
#   - input: schema["policy_read_input.schema"]
#   - data.memory.settings: schema["policy_settings.schema"]
package memory.read

import data.memory.settings

import future.keywords.not
import rego.v1

# METADATA
# title: The decision of a read
# description: The one document that is asked for. Always defined; anything unclear is a refusal.
# entrypoint: true
decision := {
	"allow": allow,
	"deny": deny,
	"plan": plan,
	"admitted": judged.admitted,
	"excluded": judged.excluded,
	"obligations": [],
	"policy": {"package": "memory.read", "version": version},
}

default version := "unknown"

version := settings.version

default allow := false

# INVARIANT: an allow list and a deny set together, so that a query nothing permits is refused.
allow if {
	purpose
	deny == set()

	# A rule whose setting is missing could not fire; so nothing is permitted without all of them.
	all := settings
	all.trust_floors
	all.trust_ranks
	all.age_limits
	all.provenance_classes
	all.summary_kinds
}

default plan := {"complete": false, "limit": 0, "clauses": []}

# A question about candidates has been planned before; making the plan again would double its price.
plan := {"complete": complete, "limit": input.query.limit, "clauses": clauses} if {
	input.candidates == []
	allow
}

default complete := false

complete if incomplete == set()

default judged := {"admitted": [], "excluded": []}

judged := {"admitted": admitted, "excluded": excluded} if {
	input.candidates != []
	allow
}

admitted := [index |
	out := excluded_indexes
	some index, _ in input.candidates
	not out[index]
]

excluded_indexes[exclusion.index] := true if some exclusion in excluded

# --- who asks, and what for --------------------------------------------------------------------------------

purpose := settings.purposes[input.query.purpose]

# METADATA
# description: An inspection crosses subjects. Whoever inspects has the role for it and says so in the purpose.
inspecting if {
	some role in input.caller.roles
	settings.operator_roles[role]
	input.query.purpose == settings.inspection_purpose
}

# METADATA
# description: The operation `inspect` also shows what a search never would, superseded or expired records.
inspecting_all if {
	input.operation == "inspect"
	inspecting
}

# --- denials -----------------------------------------------------------------------------------------------

# METADATA
# title: A query stays in the tenant of its caller
# description: >-
#   The tenant that a query names is the tenant of the caller, byte for byte. Only an operator who inspects
#   may leave the tenant open, and then looks at all of them.
# custom:
#   rule_id: MEM-R-101
#   severity: critical
#   scope: query
#   controls: [OWASP-ASI03, OWASP-LLM02, GDPR-5-1-C]
#   attributes: []
#   settings: [operator_roles, inspection_purpose]
deny contains {"rule_id": "MEM-R-101", "reason": "tenant_mismatch"} if {
	not input.query.tenant_id == input.caller.tenant_id
	not tenant_left_open
}

tenant_left_open if {
	input.query.tenant_id == null
	inspecting_all
}

# METADATA
# title: Somebody asks
# description: The trusted context of a query names the principal on whose behalf memory is read.
# custom:
#   rule_id: MEM-R-102
#   severity: high
#   scope: query
#   controls: [OWASP-ASI03, EU-AI-ACT-12]
#   attributes: []
#   settings: []
deny contains {"rule_id": "MEM-R-102", "reason": "principal_missing"} if {
	not input.caller.principal_id > ""
}

# METADATA
# title: Nobody asks in another's name
# description: The principal that a query names is the principal of the trusted context it came in.
# custom:
#   rule_id: MEM-R-103
#   severity: high
#   scope: query
#   controls: [OWASP-ASI03]
#   attributes: []
#   settings: []
deny contains {"rule_id": "MEM-R-103", "reason": "principal_mismatch"} if {
	not input.query.principal_id == input.caller.principal_id
}

# METADATA
# title: Memory is read for a known purpose
# description: A query says what it is for, and the purpose is one of those that the settings name.
# custom:
#   rule_id: MEM-R-104
#   severity: high
#   scope: query
#   controls: [GDPR-5-1-B]
#   attributes: []
#   settings: [purposes]
deny contains {"rule_id": "MEM-R-104", "reason": "purpose_unknown"} if {
	not purpose
}

# METADATA
# title: A query is bounded
# description: >-
#   A query asks for at least one record and at most as many as the settings allow; an inspection may ask for
#   more than a query.
# custom:
#   rule_id: MEM-R-105
#   severity: medium
#   scope: query
#   controls: [OWASP-ASI06, GDPR-5-1-C]
#   attributes: []
#   settings: [limits]
deny contains {"rule_id": "MEM-R-105", "reason": "limit_out_of_bounds"} if not limit_within_bounds

limit_within_bounds if {
	limits := settings.limits
	input.query.limit >= limits.query_min
	input.query.limit <= limits.query_max
}

limit_within_bounds if {
	input.operation == "inspect"
	limits := settings.limits
	input.query.limit >= limits.query_min
	input.query.limit <= limits.inspection_max
}

# METADATA
# title: A purpose reads only its own memory classes
# description: >-
#   Every class that a query names must be one that its purpose may read. A query that names another is
#   refused whole and not narrowed. A query that names none is refused; only an inspection may leave it open.
# custom:
#   rule_id: MEM-R-106
#   severity: high
#   scope: query
#   controls: [GDPR-5-1-B, GDPR-5-1-C]
#   attributes: []
#   settings: [purposes]
deny contains {"rule_id": "MEM-R-106", "reason": "class_not_permitted"} if {
	input.query.allowed_classes != null
	permitted_classes := purpose.classes
	some class in input.query.allowed_classes
	not permitted_classes[class]
}

deny contains {"rule_id": "MEM-R-106", "reason": "class_not_permitted"} if {
	not input.query.allowed_classes > []
	not classes_left_open
}

classes_left_open if {
	input.query.allowed_classes == null
	inspecting_all
}

# METADATA
# title: A query stays with the caller's own subject
# description: >-
#   A query may name the person it is about only if that is the caller's own subject. An operator who
#   inspects may name another.
# custom:
#   rule_id: MEM-R-107
#   severity: critical
#   scope: query
#   controls: [OWASP-ASI03, OWASP-LLM02, GDPR-5-1-C]
#   attributes: []
#   settings: [operator_roles, inspection_purpose]
deny contains {"rule_id": "MEM-R-107", "reason": "subject_mismatch"} if {
	not input.query.subject in [null, input.caller.subject]
	not inspecting
}

# METADATA
# title: Looking at everything is for operators
# description: >-
#   The operation `inspect`, which alone may look over all tenants, needs the role of an operator and the
#   purpose of inspection.
# custom:
#   rule_id: MEM-R-108
#   severity: critical
#   scope: query
#   controls: [OWASP-ASI03, GDPR-5-1-B]
#   attributes: []
#   settings: [operator_roles, inspection_purpose]
deny contains {"rule_id": "MEM-R-108", "reason": "inspection_not_permitted"} if {
	input.operation == "inspect"
	not inspecting
}

# METADATA
# title: Only known ways of reading
# description: A read is a search, a get, a list or an inspection. Anything else is refused.
# custom:
#   rule_id: MEM-R-109
#   severity: medium
#   scope: query
#   controls: [OWASP-ASI06]
#   attributes: []
#   settings: []
deny contains {"rule_id": "MEM-R-109", "reason": "operation_unknown"} if {
	not input.operation in {"search", "get", "list", "inspect"}
}

# METADATA
# title: A trust floor is a known level
# description: Where a query asks for a least trust, it is one of the levels low, medium and high.
# custom:
#   rule_id: MEM-R-110
#   severity: medium
#   scope: query
#   controls: [OWASP-ASI06]
#   attributes: []
#   settings: []
deny contains {"rule_id": "MEM-R-110", "reason": "trust_min_unknown"} if {
	not input.query.trust_min_rank in {null, 1, 2, 3}
}

# METADATA
# title: A maximum age is a sensible number of days
# description: Where a query asks for a greatest age, it is a number of days from zero to the bound in the settings.
# custom:
#   rule_id: MEM-R-111
#   severity: medium
#   scope: query
#   controls: [GDPR-5-1-E]
#   attributes: []
#   settings: [limits]
deny contains {"rule_id": "MEM-R-111", "reason": "max_age_invalid"} if {
	not input.query.max_age_days == null
	not max_age_valid
}

max_age_valid if {
	input.query.max_age_days >= 0
	input.query.max_age_days <= settings.limits.max_age_days_max
}

# METADATA
# title: A query is well formed
# description: >-
#   What the other rules rely on is there and of the right type: the instant of the decision, whether
#   provenance is demanded, lists where lists are meant, and every attribute of the records to be judged.
#   Whatever is missing or strange is refused, and nothing is shown.
# custom:
#   rule_id: MEM-R-112
#   severity: high
#   scope: query
#   controls: [OWASP-ASI06]
#   attributes: []
#   settings: []
deny contains {"rule_id": "MEM-R-112", "reason": "query_malformed"} if not well_formed

# Rego orders values by type, null < boolean < number < string < array < object, so a text is `>= ""` and `< []`,
# and a list is `>= []` and `< {}`. A missing value is none of them. `every` holds over lists and objects only.
well_formed if {
	input.now_ns > 0
	input.now_ns < ""
	input.caller.tenant_id > ""
	input.caller.tenant_id < []
	input.caller.principal_id < []
	input.caller.subject > ""
	input.caller.subject < []
	input.query.subject < []
	input.query.allowed_classes < {}
	every flag in [input.caller.anonymous, input.query.require_provenance, input.query.has_text] {
		flag in {true, false}
	}
	every words in [
		input.caller.roles,
		input.query.kinds,
		input.query.sources,
		input.query.keys,
		input.query.record_ids,
		input.query.statuses,
	] {
		words < {}
		every word in words {
			word >= ""
			word < []
		}
	}
	[subject | subject := input.query.subject; subject < ""; subject != null] == []
	input.candidates < {}
	records_well_formed
}

# One body for a whole record: the engine that is embedded takes its time for each body, not for each comparison.
records_well_formed if {
	every record in input.candidates {
		every word in [
			record.record_id,
			record.tenant_id,
			record.memory_class,
			record.kind,
			record.source,
			record.provenance,
			record.status,
		] {
			word >= ""
			word < []
		}
		every word in [record.subject, record.key] {
			word < []
			[word | word < ""; word != null] == []
		}
		every flag in [record.provenance_known, record.outranked, record.derived] {
			flag in {true, false}
		}
		record.trust_rank in {1, 2, 3}
		record.confidence_millionths >= 0
		record.confidence_millionths <= 1000000
		record.created_ns > true
		record.created_ns < ""
		record.revision > 0
		record.revision < ""
		record.expires_ns < ""
		[instant | instant := record.expires_ns; instant <= true; instant != null] == []
	}
}
