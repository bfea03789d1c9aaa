# SPDX-License-Identifier: GPL-2.0-only
#
# Reads a console, prints one line for each KUnit case ("ok|not ok|skip
# suite.case", with the reason of a skip behind it), then "suites <n>" of those
# complete, and "broken <why>" for each that is not: a plan not fulfilled, or no
# closing line.

function finish() {
	if (suite != "")
		print "broken suite " suite ": ended after " cases " of " plan " cases"
	suite = ""
}

{
	sub(/\r$/, "")
	sub(/^(<[0-9]+>)?\[ *[0-9]+\.[0-9]+\](\[ *[TC][0-9]+\])? /, "")
}

/^    # Subtest: / {
	finish()
	suite = $3
	plan = cases = failed = 0
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
	cases++
	failed += bad
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
