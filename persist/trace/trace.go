// Package trace writes what happens when into a file of trace events, an array of JSON objects that
// ui.perfetto.dev and chrome://tracing show. The array is complete after every write; a file that
// was cut off in the midst of one is still read by both.
package trace

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// Bounds of memory, of what a crash may lose, and of the file; what comes later is left out.
const (
	atOnce   = 64 << 10
	interval = 100e6 // nanoseconds
	limit    = 256 << 20
)

// File is a file of events. It is shared by those that name it, and may be used by any goroutine.
type File struct {
	mu        sync.Mutex
	path      string
	file      *os.File
	users     int
	processes int
	events    []byte // not written yet
	at        int64  // where in the file they begin
	written   uint64 // when
	full      bool
	err       error // of the first write that failed
}

var open struct {
	sync.Mutex
	files map[string]*File
}

const begin, between, end = "[\n", ",\n", "\n]\n"

// Open makes a file, or finds it open already.
func Open(path string) (*File, error) {
	open.Lock()
	defer open.Unlock()
	if full, err := filepath.Abs(path); err == nil {
		path = full
	}
	if f := open.files[path]; f != nil {
		f.users++
		return f, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("the timeline cannot be written: %w", err)
	}
	f := &File{path: path, file: file, users: 1, events: []byte(begin)}
	if open.files == nil {
		open.files = map[string]*File{}
	}
	open.files[path] = f
	return f, nil
}

// Process is a group of tracks in a file; a nil one writes nothing.
type Process struct {
	f  *File
	id int
}

// Process makes a group of tracks, which have the numbers 1, 2, ...
func (f *File) Process(name string, tracks ...string) *Process {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes++
	p := &Process{f, f.processes}
	f.add(fmt.Appendf(nil, `{"name":"process_name","ph":"M","pid":%d,"args":{"name":%s}}`, p.id, strconv.Quote(name)))
	for i, track := range tracks {
		f.add(fmt.Appendf(nil, `{"name":"thread_name","ph":"M","pid":%d,"tid":%d,"args":{"name":%s}}`, p.id, i+1, strconv.Quote(track)))
		f.add(fmt.Appendf(nil, `{"name":"thread_sort_index","ph":"M","pid":%d,"tid":%d,"args":{"sort_index":%d}}`, p.id, i+1, i))
	}
	return p
}

// add appends an event.
func (f *File) add(event []byte) {
	f.separate()
	f.events = append(f.events, event...)
}

// separate puts what stands between two events behind the last, if there is one.
func (f *File) separate() {
	if len(f.events) > len(begin) || f.at > 0 {
		f.events = append(f.events, between...)
	}
}

// Span says that something went on from one nanosecond to another; batch 0: of none.
func (p *Process) Span(track int, name string, batch uint64, from, to uint64) {
	if p == nil {
		return
	}
	f := p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return
	}
	f.separate()
	b := append(f.events, `{"name":"`...)
	b = append(b, name...) // ours: needs no quoting
	b = append(b, `","ph":"X","pid":`...)
	b = strconv.AppendInt(b, int64(p.id), 10)
	b = append(b, `,"tid":`...)
	b = strconv.AppendInt(b, int64(track), 10)
	b = appendMicroseconds(append(b, `,"ts":`...), from)
	b = appendMicroseconds(append(b, `,"dur":`...), max(to, from)-from)
	if batch > 0 {
		b = strconv.AppendUint(append(b, `,"args":{"batch":`...), batch, 10)
		b = append(b, '}')
	}
	f.events = append(b, '}')
	if len(f.events) > atOnce || to > f.written+interval {
		f.written = to
		f.write()
	}
}

func appendMicroseconds(b []byte, ns uint64) []byte {
	b = strconv.AppendUint(b, ns/1000, 10)
	r := ns % 1000
	return append(b, '.', byte('0'+r/100), byte('0'+r/10%10), byte('0'+r%10))
}

// write puts the events into the file and the array's end behind them.
func (f *File) write() {
	n := len(f.events)
	if f.err == nil {
		_, f.err = f.file.WriteAt(append(f.events, end...), f.at)
	}
	f.at += int64(n)
	f.events = f.events[:0]
	f.full = f.err != nil || f.at > limit
}

// Flush writes what there is and tells of the first write that failed.
func (p *Process) Flush() error {
	if p == nil {
		return nil
	}
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	return p.f.flush()
}

func (f *File) flush() error {
	if len(f.events) > 0 {
		f.write()
	}
	if f.err != nil {
		return fmt.Errorf("the timeline ends early: %w", f.err)
	}
	return nil
}

// Close ends a user's part; the last one's closes the file.
func (f *File) Close() error {
	open.Lock()
	defer open.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users--; f.users > 0 {
		return f.flush()
	}
	delete(open.files, f.path)
	err := f.flush()
	if closed := f.file.Close(); err == nil {
		err = closed
	}
	return err
}
