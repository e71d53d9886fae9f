package plan

import (
	"fmt"
	"strings"
	"sync"

	"libvpps/log"
)

// Gradients that are formed in blocks can be formed by a library, too: by cuBLAS, from operands that the kernel has
// collected. That pays where they are many, so the library is found when the first such batch comes; where it cannot
// be had the kernel forms them all.

// libraryItems is from how many items of a matrix in a batch on its gradient is the library's. Measured on an H200
// (docs/RATIONALE.md).
const libraryItems = 256

// NoLibrary in Settings: the kernel forms all gradients.
const NoLibrary = -1

// Library is the library of an executor, found at first use; nil: there is none. Its methods may be called from
// several goroutines.
type Library struct {
	Items int // the least number of a matrix's items in a batch for which it forms the gradient

	mu   sync.Mutex
	find func() (name string, err error) // nil: it was called
	name string                          // of the library that was found
	why  string                          // the kernel forms all gradients
}

// NewLibrary is a library that find finds.
func NewLibrary(s Settings, find func() (name string, err error)) *Library {
	l := &Library{Items: s.Library, find: find}
	switch {
	case s.Library == 0:
		l.Items = libraryItems
	case s.Library < 0:
		l.Items, l.find, l.why = libraryItems, nil, "VPPS_PLAN says library=0"
	}
	return l
}

// Ready reports whether gradients can be left to the library. The first call finds it.
func (l *Library) Ready() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.find != nil && l.why == "" {
		var err error
		if l.name, err = l.find(); err != nil {
			l.refuse(err)
		}
		l.find = nil
	}
	return l.why == ""
}

// Refuse leaves all gradients to the kernel from now on.
func (l *Library) Refuse(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuse(why)
}

func (l *Library) refuse(why error) {
	l.why = firstLine(why)
	log.Infof("fallback", "the kernel forms all gradients, without cuBLAS: %s", l.why)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// report is the line about the library in a plan's report.
func (l *Library) report() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	what := fmt.Sprintf("gradients formed in blocks, of a matrix with %d items in a batch or more: ", l.Items)
	switch {
	case l.why != "":
		return what + "by the kernel, as those of fewer: " + l.why
	case l.find != nil:
		return what + "by cuBLAS, which is looked for when there is the first"
	}
	return what + "by " + l.name
}

// InParts reports whether the plan has gradients that a library may form, for which scripts are in two parts.
func (p *Plan) InParts() bool {
	for _, w := range p.Where {
		if w.Unit > 0 {
			return true
		}
	}
	return false
}
