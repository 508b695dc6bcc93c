# What was found in a candidate: secrets, instructions, size, protected keys, forgotten content.
package memory.write

import data.memory.settings

import future.keywords.not
import rego.v1

# METADATA
# title: Protected keys
# description: >-
#   Keys that could be taken for rules of the system are written by the roles in the settings only, however
#   the key is capitalised.
# custom:
#   rule_id: MEM-W-110
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM01]
#   attributes: [key]
#   settings: [protected_keys]
deny contains {"index": index, "rule_id": "MEM-W-110", "reason": "protected_key"} if {
	input.operation == "write"
	protected := settings.protected_keys
	some index, candidate in input.candidates
	candidate.key != null

	# portable: a key in a policy document is ASCII; any other stands there as a digest.
	strings.any_prefix_match(lower(candidate.key), protected.prefixes)
	not may_write_protected
}

# A key that is no plain identifier stands in the document as a digest; that it is protected is a finding then.
deny contains {"index": index, "rule_id": "MEM-W-110", "reason": "protected_key"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	finding.type == "key.protected"
	not may_write_protected
}

may_write_protected if {
	some role in input.caller.roles
	settings.protected_keys.roles[role]
}

# METADATA
# title: Not too large
# description: >-
#   A record is at most as large as the settings allow.
# custom:
#   rule_id: MEM-W-111
#   severity: medium
#   scope: candidate
#   controls: [OWASP-ASI06]
#   attributes: [size_bytes]
#   settings: [limits]
deny contains {"index": index, "rule_id": "MEM-W-111", "reason": "too_large"} if {
	input.operation == "write"
	largest := settings.limits.size_bytes_max
	some index, candidate in input.candidates
	not candidate.size_bytes <= largest
}

# METADATA
# title: No secret is kept for long
# description: >-
#   A password, key or token never enters a durable class; nor, in any class, a field from which it cannot
#   be redacted.
# custom:
#   rule_id: MEM-W-112
#   severity: critical
#   scope: candidate
#   controls: [OWASP-LLM02, GDPR-5-1-C]
#   attributes: [memory_class, findings]
#   settings: [classes, redactable_fields]
deny contains {"index": index, "rule_id": "MEM-W-112", "reason": "secret_in_durable_class"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	startswith(finding.type, "secret.")
	not settings.classes[candidate.memory_class].durable == false
}

deny contains {"index": index, "rule_id": "MEM-W-112", "reason": "secret_in_durable_class"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	startswith(finding.type, "secret.")
	not settings.redactable_fields[finding.field]
}

# METADATA
# title: What was forgotten stays forgotten
# description: >-
#   Content that was removed at a person's request, or rejected by a reviewer, is not learnt again, unless that
#   person or a trusted profile says it anew.
# custom:
#   rule_id: MEM-W-117
#   severity: high
#   scope: candidate
#   controls: [GDPR-17]
#   attributes: [tombstoned, source]
#   settings: [relearn_sources]
deny contains {"index": index, "rule_id": "MEM-W-117", "reason": "forgotten_content"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	not candidate.tombstoned == false
	not settings.relearn_sources[candidate.source]
}

# --- quarantine and redaction ------------------------------------------------------------------------------

# METADATA
# title: Text that reads like an instruction to the agent is held back
# description: >-
#   A record with such text is kept, but not read until somebody other than its writer releases it.
# custom:
#   rule_id: MEM-W-201
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM01, OWASP-LLM04]
#   attributes: [findings]
#   settings: []
quarantine contains {"index": index, "rule_id": "MEM-W-201", "reason": "instruction_like"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	startswith(finding.type, "instruction.")
}

# METADATA
# title: Text that would change rights is held back
# description: >-
#   A record that reads like a grant of rights or a lifted approval is kept, but not read until it is
#   released.
# custom:
#   rule_id: MEM-W-202
#   severity: critical
#   scope: candidate
#   controls: [OWASP-ASI03, OWASP-ASI06]
#   attributes: [findings]
#   settings: []
quarantine contains {"index": index, "rule_id": "MEM-W-202", "reason": "rights_change"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	startswith(finding.type, "rights.")
}

# METADATA
# title: Text that would carry data out is held back
# description: >-
#   A record that reads like a request to send data elsewhere is kept, but not read until it is released.
# custom:
#   rule_id: MEM-W-203
#   severity: high
#   scope: candidate
#   controls: [OWASP-ASI06, OWASP-LLM02]
#   attributes: [findings]
#   settings: []
quarantine contains {"index": index, "rule_id": "MEM-W-203", "reason": "exfiltration"} if {
	input.operation == "write"
	some index, candidate in input.candidates
	some finding in candidate.findings
	startswith(finding.type, "exfiltration.")
}

# METADATA
# title: Secrets are taken out of what is kept for a short while
# description: >-
#   A password, key or token in a record of a class that is not durable is replaced before the record is kept.
# custom:
#   rule_id: MEM-W-301
#   severity: high
#   scope: candidate
#   controls: [OWASP-LLM02, GDPR-5-1-C]
#   attributes: [findings]
#   settings: []
obligations contains {"index": index, "type": "redact", "rule_id": "MEM-W-301", "findings": types} if {
	input.operation == "write"
	some index, candidate in input.candidates
	types := [finding.type | some finding in candidate.findings; startswith(finding.type, "secret.")]
	types != []
}
