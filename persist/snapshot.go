package persist

// Snapshots: the parameters' values in host memory, for the case that the device is lost.

import (
	"fmt"
	"unsafe"

	"libvpps/jit/kernel"
	"libvpps/log"
)

// snapshot is all parameters as they were after one update.
type snapshot struct {
	every   uint64 // updates from one to the next; 0: none are taken
	taken   bool
	updates uint64 // after which it was taken
	values  []unsafe.Pointer
	sizes   []uint32
	factors []float32 // of the collections
}

// due reports whether it is time for another one.
func (s *snapshot) due(updates uint64) bool {
	return s.every > 0 && (!s.taken || updates >= s.updates+s.every)
}

// takeSnapshot waits for all batches and copies the parameters.
func (e *Engine) takeSnapshot() error {
	e.drain()
	if err := e.settle(0); err != nil {
		return err
	}
	s, began := &e.snapshot, now()
	s.taken = false
	for id := range e.params {
		if id == len(s.values) {
			s.values, s.sizes = append(s.values, nil), append(s.sizes, 0)
		}
		p := &e.params[id]
		if s.sizes[id] != p.Size {
			kernel.Free(s.values[id])
			s.values[id], s.sizes[id] = kernel.Alloc(int(p.Size)), p.Size
		}
		if p.Size == 0 {
			continue
		}
		if s.values[id] == nil {
			s.sizes[id] = 0
			return wrong(ErrMemory, "parameter %q: no memory for a snapshot of %d bytes: take none (VPPS_SNAPSHOT_BATCHES=0)", p.name, 4*uint64(p.Size))
		}
		if err := e.download(p.segment(Values), uint64(p.Offset), s.of(uint32(id))); err != nil {
			return err
		}
	}
	s.factors = s.factors[:0]
	for _, c := range e.collections {
		s.factors = append(s.factors, c.Factor)
	}
	s.taken, s.updates = true, e.updates
	e.stats.Snapshots++
	log.Infof("snapshot", "after update %d: %s in %.3f s", s.updates, size(s.bytes()), float64(now()-began)/1e9)
	return nil
}

func (s *snapshot) of(id uint32) []float32 {
	return unsafe.Slice((*float32)(s.values[id]), s.sizes[id])
}

// read copies values of a parameter of a lost device, which lost tells about if there are none.
func (s *snapshot) read(id uint32, offset uint64, to []float32, lost error) error {
	if !s.taken || int(id) >= len(s.values) || s.sizes[id] == 0 {
		return lost
	}
	all := s.of(id)
	if offset > uint64(len(all)) || uint64(len(to)) > uint64(len(all))-offset {
		return wrong(ErrArgument, "elements %d..%d of %d", offset, offset+uint64(len(to)), len(all))
	}
	copy(to, all[offset:])
	return nil
}

// advice is what a program can do after the device is lost.
func (s *snapshot) advice() string {
	if s.taken {
		return fmt.Sprintf("parameters read as after update %d, the last snapshot: save them and go on in a new process", s.updates)
	}
	return "parameters are lost: load them from a file in a new process; VPPS_SNAPSHOT_BATCHES=N keeps them in memory every N updates"
}

// bytes is how much memory the copies have.
func (s *snapshot) bytes() (n uint64) {
	for _, size := range s.sizes {
		n += 4 * uint64(size)
	}
	return n
}

func (s *snapshot) free() {
	for _, mem := range s.values {
		kernel.Free(mem)
	}
	*s = snapshot{}
}
