// Package log tells what the library does, one line for an event: on standard error (VPPS_LOG), or
// to a function of the program (vpps_set_log).
package log

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"libvpps/env"
)

// Level says how much is told.
type Level int32

const (
	Off   Level = iota
	Info        // the plan, compilations, fallbacks, snapshots, slow batches
	Debug       // also whole reports: of the plan, and of memory when an engine is closed
)

var names = []string{"off", "info", "debug"}

// unread is the level before VPPS_LOG was read.
const unread = -1

var (
	level   atomic.Int32
	writing sync.Mutex          // of to, and held while a line is written
	to      func(Level, string) // nil: standard error
	start   = time.Now()
)

func init() { level.Store(unread) }

// On reports whether lines of a level are told.
func On(l Level) bool {
	now := level.Load()
	if now == unread {
		now = int32(fromEnvironment())
		level.CompareAndSwap(unread, now)
	}
	return int32(l) <= now
}

func fromEnvironment() Level {
	for l, name := range names {
		if name == env.String("VPPS_LOG") {
			return Level(l)
		}
	}
	return Off
}

// Set has lines up to a level told to f, or on standard error if f is nil. It returns when no function that was
// set before is being called any more.
func Set(l Level, f func(Level, string)) {
	writing.Lock()
	defer writing.Unlock()
	to = f
	level.Store(int32(l))
}

// Infof tells of an event, whose kind is the line's first word.
func Infof(kind, format string, a ...any) {
	if On(Info) {
		put(Info, kind+": "+strings.ReplaceAll(fmt.Sprintf(format, a...), "\n", " | "))
	}
}

// Report tells a text of several lines, line by line, whatever the level is: the program asked for it in another way.
func Report(kind, text string) { report(Info, kind, text) }

// DebugReport tells a text of several lines, line by line.
func DebugReport(kind, text string) {
	if On(Debug) {
		report(Debug, kind, text)
	}
}

func report(l Level, kind, text string) {
	for line := range strings.Lines(text) {
		put(l, kind+": "+strings.TrimSuffix(line, "\n"))
	}
}

func put(l Level, line string) {
	writing.Lock()
	defer writing.Unlock()
	if to != nil {
		to(l, line)
		return
	}
	env.Say(fmt.Sprintf("libvpps %.3f s %s", time.Since(start).Seconds(), line))
}
