package main

// Objects of the C interface. A program has a number for each, in place of a pointer: its kind, the slot where it is
// and that slot's generation. No number is given out twice, so one that was destroyed never stands for another object.
// An object is not destroyed while a call uses it.

import (
	"runtime"
	"sync"
	"sync/atomic"

	"libvpps/persist"
)

// number is what a program has of an object: 1, kind (3 bits), generation (36), index of the slot (24). The highest bit
// tells it from the program's addresses.
type number uint64

const (
	indexBits      = 24
	generationBits = 36
	kindBits       = 3
	numberMark     = number(1) << 63
)

func (n number) kind() kind         { return kind(n >> (indexBits + generationBits) & (1<<kindBits - 1)) }
func (n number) index() uint32      { return uint32(n & (1<<indexBits - 1)) }
func (n number) generation() uint64 { return uint64(n >> indexBits & (1<<generationBits - 1)) }

// kind is that of an object; the zero value is none.
type kind uint8

const (
	engineKind kind = 1 + iota
	graphKind
	trainerKind
	handleKind
	checkpointKind
	commKind
)

func (k kind) String() string {
	return [...]string{"object", "engine", "graph", "trainer", "handle", "checkpoint", "communicator"}[k]
}

// slot is where an object is.
type slot struct {
	state  atomic.Uint64 // see below
	object any           // written while the slot is vacant
	_      [40]byte      // slots share no cache line
}

// A slot's state: generation (36 bits), kind (3; none in a vacant slot), frozen (1), calls that use the object (24).
const (
	callBits = 24
	oneCall  = uint64(1)
	frozen   = uint64(1) << callBits // somebody is about to destroy the object
	allCalls = frozen - 1
)

func kindOf(state uint64) kind         { return kind(state >> (callBits + 1) & (1<<kindBits - 1)) }
func generationOf(state uint64) uint64 { return state >> (callBits + 1 + kindBits) }
func stateOf(generation uint64, k kind) uint64 {
	return generation<<(callBits+1+kindBits) | uint64(k)<<(callBits+1)
}

// registry has objects. Finding one takes no lock.
type registry struct {
	mu     sync.Mutex // of free and used
	free   []uint32   // vacant slots; the last one is in the processor's cache
	used   uint32     // slots made so far
	chunks atomic.Pointer[[]*chunk]
}

const chunkSlots = 256

type chunk [chunkSlots]slot

// objects are those of the process.
var objects registry

// at is the slot with an index, nil if there is none.
func (r *registry) at(index uint32) *slot {
	chunks := r.chunks.Load()
	if chunks == nil || index/chunkSlots >= uint32(len(*chunks)) {
		return nil
	}
	return &(*chunks)[index/chunkSlots][index%chunkSlots]
}

// add gives an object a number.
func (r *registry) add(k kind, object any) (number, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	index := r.used
	if n := len(r.free); n > 0 {
		index, r.free = r.free[n-1], r.free[:n-1]
	} else if err := r.extend(); err != nil {
		return 0, err
	}
	s := r.at(index)
	generation := generationOf(s.state.Load())
	s.object = object
	s.state.Store(stateOf(generation, k))
	return numberMark | number(k)<<(indexBits+generationBits) | number(generation)<<indexBits | number(index), nil
}

// extend makes one more slot.
func (r *registry) extend() error {
	if r.used == 1<<indexBits {
		return wrong(persist.ErrMemory, "there are %d graphs, trainers, handles, engines, checkpoints and communicators, and no room for more: destroy some", r.used)
	}
	var chunks []*chunk
	if p := r.chunks.Load(); p != nil {
		chunks = *p
	}
	if r.used == uint32(len(chunks))*chunkSlots {
		more := append(chunks[:len(chunks):len(chunks)], &chunk{})
		r.chunks.Store(&more)
	}
	r.used++
	return nil
}

// acquire finds an object for a call, which must end with release.
func (r *registry) acquire(n number, k kind) (*slot, error) { return r.claim(n, k, oneCall) }

func (s *slot) release() { s.state.Add(^(oneCall - 1)) }

// freeze finds an object that is to be destroyed, which must end with remove or thaw. Other calls on the object wait.
func (r *registry) freeze(n number, k kind) (*slot, error) { return r.claim(n, k, frozen) }

func (s *slot) thaw() { s.state.Add(^(frozen - 1)) }

// claim finds an object and adds to its state: oneCall, or frozen if no call uses it.
func (r *registry) claim(n number, k kind, what uint64) (*slot, error) {
	if n == 0 {
		return nil, argument("the %s is NULL", k)
	}
	s := r.at(n.index())
	if s == nil || n&numberMark == 0 {
		return nil, gone(k)
	}
	for {
		state := s.state.Load()
		switch {
		case generationOf(state) != n.generation() || kindOf(state) != n.kind() || kindOf(state) == 0:
			return nil, gone(k)
		case n.kind() != k:
			return nil, argument("this is no %s but another object, of type %s", k, n.kind())
		case state&frozen != 0:
			runtime.Gosched()
		case what == frozen && state&allCalls != 0:
			return nil, wrong(persist.ErrState, "a call of another thread uses the %s: destroy it after that", k)
		case s.state.CompareAndSwap(state, state+what):
			return s, nil
		}
	}
}

func gone(k kind) error {
	return argument("this is no %s: it was destroyed, or never made", k)
}

// remove makes the slot of a frozen object vacant. A slot whose generations are used up is not taken again.
func (r *registry) remove(n number, s *slot) {
	s.object = nil
	generation := n.generation() + 1
	s.state.Store(stateOf(generation&(1<<generationBits-1), 0))
	if generation>>generationBits != 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free = append(r.free, n.index())
}

// use calls do with the object that a number stands for; nobody destroys it meanwhile.
func use[T any](n number, k kind, do func(T) error) error {
	s, err := objects.acquire(n, k)
	if err != nil {
		return err
	}
	defer s.release()
	return do(s.object.(T))
}
