package script

// Scheduled is scheduled for the tests of package script_test.
var Scheduled = scheduled
