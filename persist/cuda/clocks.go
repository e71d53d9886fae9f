package cuda

import (
	"unsafe"

	"libvpps/persist/clocks"
	"libvpps/persist/isa"
)

// The records that processors with clocks leave: in mapped memory, one set for each staging slot.

const recordBytes = 8 * isa.ClockWords

// watch makes room for a launch's records, if there are clocks. Records of a launch that is skipped
// stay 0.
func (l *launches) watch(t *staging, processors int) error {
	if l.clocks == nil {
		return nil
	}
	if need := processors * recordBytes; t.clocks.Bytes != need {
		b, err := l.dev.AllocHost(need)
		if err != nil {
			return err
		}
		old := t.clocks
		t.clocks = b
		if err := l.dev.FreeHost(old); err != nil {
			return err
		}
	}
	for r := t.records(); len(r) > 0; r = r[isa.ClockWords:] {
		clear(r[:isa.ClockLevels])
	}
	return nil
}

func (t *staging) records() []uint64 {
	return unsafe.Slice((*uint64)(t.clocks.Mem), t.clocks.Bytes/8)
}

// Clocks is where launches spent their time so far, nil without clocks. It waits for them.
func (l *launches) Clocks() (*clocks.Sum, error) {
	if l.clocks == nil {
		return nil, nil
	}
	return l.clocks, l.finishAll()
}
