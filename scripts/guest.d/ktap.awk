# SPDX-License-Identifier: GPL-2.0-only
#
# Reads a console, prints one line for each KUnit case ("ok|not ok|skip
# suite.case", with the reason of a skip behind it; after one that is not ok, "said
# <line>" for the first lines of its output), then "suites <n>" for the complete suites,
# and "broken <why>" for each incomplete one: a plan not fulfilled, or no closing line.

BEGIN {
	most_said = 12
}

function finish() {
	if (suite != "")
		print "broken suite " suite ": ended after " cases " of " plan " cases"
	suite = ""
}

# The output of a case matters if it fails: with parameters, since the previous one.
function keep_said(bad) {
	if (!bad && !failed_parameter)
		said = 0
	failed_parameter = failed_parameter || bad
}

function print_said(  i) {
	for (i = 0; i < said; i++)
		print "said " words[i]
}

{
	sub(/\r$/, "")
	sub(/^(<[0-9]+>)?\[ *[0-9]+\.[0-9]+\](\[ *[TC][0-9]+\])? /, "")
}

/^    # Subtest: / {
	finish()
	suite = $3
	plan = cases = failed = said = failed_parameter = 0
	next
}

/^    1\.\.[0-9]+$/ && suite != "" {
	plan = substr($1, 4) + 0
	next
}

/^    (not )?ok [0-9]+ / && suite != "" {
	bad = $1 == "not"
	name = bad ? $4 : $3
	verdict = bad ? "not ok" : / # SKIP/ ? "skip" : "ok"
	why = ""
	if (match($0, / # SKIP /))
		why = " " substr($0, RSTART + RLENGTH)
	print verdict " " suite "." name why
	if (bad)
		print_said()
	said = failed_parameter = 0
	cases++
	failed += bad
	next
}

/^     +(not )?ok [0-9]+ / {
	keep_said($1 == "not")
	next
}

/^    / && !failed_parameter && said < most_said {
	sub(/^ */, "")
	words[said++] = $0
	next
}

/^(not )?ok [0-9]+ / && suite != "" {
	bad = $1 == "not"
	name = bad ? $4 : $3
	if (name != suite)
		next
	if (cases != plan)
		finish()
	else if (bad && !failed)
		print "broken suite " suite ": failed outside of its cases"
	else
		complete++
	suite = ""
}

END {
	finish()
	print "suites " complete + 0
}
