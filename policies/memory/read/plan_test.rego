# A plan that does not say everything says so.
package memory.read_test

import data.memory.read

import rego.v1

test_a_rule_without_a_clause_leaves_the_plan_incomplete if {
	answer := read.decision with input as request with read.without_clause as ["MEM-R-299"]
	answer.allow == true
	answer.plan.complete == false
}

test_every_rule_has_a_clause if {
	read.without_clause == []
}
