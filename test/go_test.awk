# Reads what "go test -v" prints, for test/run. The lines of tests that run side by side are told apart by the name that stands
# in the last line "=== RUN", "=== CONT" or "=== NAME".
function skips_of_package(name, why) {
	for (why in tests) print "skipped: " why " (" name ": " tests[why] ")"
	delete tests
	delete reason
}

/^=== (RUN|CONT|NAME) / { test = $3 }
/\.go:[0-9]+: (skipped|not with -short): / {
	why = $0
	sub(/^ *[^ ]*\.go:[0-9]+: /, "", why)
	reason[test] = why
}
/^ *--- SKIP: / {
	why = reason[$3]
	if (why == "") why = "skipped: for no reason that begins like this"
	if (why ~ /^skipped: / ) {
		sub(/^skipped: /, "", why)
		tests[why] = tests[why] (tests[why] == "" ? "" : ", ") $3
		skipped++
	}
}
/^--- PASS: / { passed++ }
/^--- FAIL: / { failed++ }
{ text = text $0 "\n" }
/^(ok|FAIL|\?) *\t/ || /\[no test files\]$/ || /^# / {
	if ($1 == "FAIL") { printf "%s", text; if (text !~ /--- FAIL:/) failed++ }
	skips_of_package($2)
	text = ""
}
/^ok/ { packages++ }
END { printf "%d %d %d %d\n", passed, failed, skipped, packages >counts }
