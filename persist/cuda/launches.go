package cuda

// The scripts on their way to the device, and what their launches took.

import (
	"sync"
	"unsafe"

	"libvpps/gpu"
	"libvpps/persist/clocks"
	"libvpps/persist/isa"
)

// Slots is how many scripts may be on their way, from their writing on; the host writes into the next slot's pinned
// memory while the device still copies from the others.
const Slots = 10

// slack is read, not used, behind a script: the device fetches whole pieces ahead.
const slack = 4 * isa.MaxWords

// launches is the slots, and the device's times.
type launches struct {
	dev      gpu.Device
	mu       sync.Mutex // of the slots' busy and batch
	staging  [Slots]staging
	timed    bool        // the Slots have marks with times
	times    bool        // measure the device's time (VPPS_TIMES=1: 1.5 us a launch)
	deviceUS float64     // so far
	copyUS   float64     // of this, until the script was copied
	clocks   *clocks.Sum // nil: none
	timeline *timeline   // nil: none
}

// staging is one slot: pinned words on the host, the same on the device, and the mark behind
// the launch that uses them.
type staging struct {
	host          gpu.HostBuffer
	dev           gpu.Ptr
	words         int
	done          gpu.Event
	begin, copied gpu.Event      // if timed
	us            float64        // the time of the last batch, if timed
	clocks        gpu.HostBuffer // the processors' records, mapped, with clocks only
	loaded        bool           // the device has the words, and they are to be launched
	busy          bool
	put           uint64 // when the host began to launch, with a timeline
	batch         uint32
}

func (l *launches) open() error {
	for i := range l.staging {
		if err := l.marks(&l.staging[i]); err != nil {
			return err
		}
	}
	return nil
}

// free frees all but pinned memory.
func (l *launches) free() {
	l.timeline.close()
	for _, t := range l.staging {
		l.dev.Free(t.dev)
		l.unmark(&t)
	}
}

// bytes is what the slots take: pinned, on the device, and the records of processors.
func (l *launches) bytes() (scripts, copies, records uint64) {
	for i := range l.staging {
		t := &l.staging[i]
		if t.words > 0 {
			scripts += 4 * uint64(t.words)
			copies += 4 * uint64(t.words+slack)
		}
		records += uint64(t.clocks.Bytes)
	}
	return scripts, copies, records
}

// marks makes a slot's events; those with times cost the device 1.5 us a launch.
func (l *launches) marks(t *staging) (err error) {
	if !l.timed {
		t.done, err = l.dev.NewEvent()
		return err
	}
	for _, mark := range []*gpu.Event{&t.begin, &t.copied, &t.done} {
		if *mark, err = l.dev.NewTimedEvent(); err != nil {
			return err
		}
	}
	return nil
}

func (l *launches) unmark(t *staging) {
	for _, mark := range []gpu.Event{t.begin, t.copied, t.done} {
		if mark != nil {
			mark.Close()
		}
	}
}

// Space is pinned words for the script of a batch, if they are enough: Launch then copies it to the device from there. The
// batch is fewer than Slots ahead of the first that was not launched yet. It may be called while another goroutine launches.
func (l *launches) Space(batch uint32) []uint32 {
	t := l.slotOf(batch)
	if l.finish(t) != nil { // the launch will tell
		return nil
	}
	t.loaded = false
	return unsafe.Slice((*uint32)(t.host.Mem), t.words)[:0]
}

// slotOf is a batch's slot; the first batch is number 1.
func (l *launches) slotOf(batch uint32) *staging { return &l.staging[(batch-1)%Slots] }

// stage brings a batch's script to the pinned memory of its slot, if it was written elsewhere.
func (l *launches) stage(batch uint32, words []uint32) (*staging, error) {
	t := l.slotOf(batch)
	if unsafe.Pointer(&words[0]) == t.host.Mem {
		return t, nil
	}
	if err := l.room(t, len(words)); err != nil {
		return nil, err
	}
	copy(unsafe.Slice((*uint32)(t.host.Mem), t.words), words)
	t.loaded = false
	return t, nil
}

// wordsOf is the words of a batch's script, nil if no slot has them.
func (l *launches) wordsOf(batch uint32) (words []uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.staging {
		if t := &l.staging[i]; t.words > 0 && t.batch == batch {
			words = unsafe.Slice((*uint32)(t.host.Mem), t.words)
		}
	}
	return words
}

// passed waits for the launch of a batch, if a slot has it.
func (l *launches) passed(batch uint32) error {
	for i := range l.staging {
		t := &l.staging[i]
		l.mu.Lock()
		mine := t.batch == batch
		l.mu.Unlock()
		if mine {
			if err := l.finish(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish waits until a slot's launch is over. A goroutine that reads a result and one that launches may wait for the
// same slot at the same time.
func (l *launches) finish(t *staging) error {
	l.mu.Lock()
	busy, batch := t.busy, t.batch
	l.mu.Unlock()
	if !busy {
		return nil
	}
	if err := t.done.Wait(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.busy || t.batch != batch {
		return nil
	}
	t.busy = false
	if l.clocks != nil {
		l.clocks.Add(t.records())
	}
	if !l.timed {
		return nil
	}
	var err error
	if t.us, err = t.done.Elapsed(t.begin); err != nil || !l.times {
		return err
	}
	l.deviceUS += t.us
	us, err := t.copied.Elapsed(t.begin)
	if err != nil {
		return err
	}
	l.copyUS += us
	return l.timeline.passed(t)
}

func (l *launches) finishAll() error {
	for i := range l.staging {
		if err := l.finish(&l.staging[i]); err != nil {
			return err
		}
	}
	return nil
}

// room waits until a slot is free and makes it large enough; if that fails it stays as it was.
func (l *launches) room(t *staging, n int) error {
	if err := l.finish(t); err != nil {
		return err
	}
	if n <= t.words {
		return nil
	}
	words := n + n/2 + 4096
	host, err := l.dev.AllocHost(4 * words)
	if err != nil {
		return err
	}
	dev, err := l.dev.Alloc(4 * int64(words+slack))
	if err == nil {
		err = l.dev.Memset32(dev, 0, int64(words+slack))
	}
	if err == nil {
		err = l.dev.Synchronize() // a script's copy does not wait for the stream
	}
	if err != nil {
		l.dev.FreeHost(host)
		l.dev.Free(dev)
		return err
	}
	old := *t
	t.host, t.dev, t.words = host, dev, words
	if err := l.dev.FreeHost(old.host); err != nil {
		return err
	}
	return l.dev.Free(old.dev)
}
