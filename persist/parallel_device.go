package persist

import (
	"libvpps/gpu"
	"libvpps/persist/comm"
	"libvpps/persist/executor"
	"libvpps/persist/isa"
)

// The exchange where the communicator works on the device's memory. Sums go to memory of their own; the gradients stay as
// they are: the update looks for them there, and afterwards both change places again.

// onDevice is how a rank exchanges on its device.
type onDevice struct {
	comm   comm.OnDevice
	memory executor.Summing
	alike  bool // parameters lie at the same offsets on all ranks
	ranges []gpu.Range
	before []executor.Run // copies for what is summed, and from it
	behind []executor.Run
	packed executor.Address // numbers of bfloat16
	count  uint64           // how many
}

// onDeviceOf is how this rank exchanges with a communicator, nil: by way of the host's memory.
func (e *Engine) onDeviceOf(c comm.Communicator) (*onDevice, error) {
	d, ok := c.(comm.OnDevice)
	if !ok {
		return nil, nil
	}
	m, ok := e.exec.(executor.Summing)
	if !ok || m.Ordinal() != d.Device() {
		return nil, wrong(ErrArgument, "the group is of GPUs, rank %d of it of cuda:%d, but the engine is on %s: open it on cuda:%d", c.Rank(), d.Device(), e.exec.Describe(), d.Device())
	}
	return &onDevice{comm: d, memory: m}, nil
}

// layout is a number that tells where parameters lie.
func (e *Engine) layout() (hash uint32) {
	for i := range e.params {
		hash = 31*hash + e.params[i].Offset
	}
	return hash
}

// sumOnDevice has the next launches find the sums of all ranks' gradients in place of this one's. A bad rank's make them NaN.
func (x *exchange) sumOnDevice(bad bool, next *notice) (behind []notice, err error) {
	e, d := x.e, x.e.ranks.device
	if bad {
		if err := x.spoil(); err != nil {
			return nil, err
		}
	}
	if err := e.exec.Wait(); err != nil { // the communicator's stream is another one
		return nil, err
	}
	var mine []uint32
	if next != nil {
		mine = next.words()
	}
	all, err := x.sumByComm(mine)
	if err == nil && all != nil {
		behind, err = readNotices(all)
	}
	if err != nil {
		return nil, wrong(ErrRank, "%v", err)
	}
	if e.ranks.bf16 {
		err = d.memory.Unpack(d.behind)
	} else {
		err = d.memory.Move(d.behind)
	}
	if err != nil {
		return nil, err
	}
	x.swap()
	return behind, nil
}

// spoil makes the first of what this rank gives NaN.
func (x *exchange) spoil() error {
	d := x.e.ranks.device
	if x.e.ranks.bf16 {
		return d.memory.Fill(d.packed, notANumber|notANumber>>16, 1) // two of them
	}
	return d.memory.Fill(d.ranges[0].From, notANumber, 1)
}

func (x *exchange) sumByComm(words []uint32) (all [][]uint32, err error) {
	d := x.e.ranks.device
	switch {
	case x.e.ranks.bf16:
		return d.comm.SumBF16(d.packed, int(d.count), words)
	case x.e.ranks.average:
		return d.comm.Sum(d.ranges, &x.share, words)
	}
	return d.comm.Sum(d.ranges, nil, words)
}

// swap has sums and gradients change places.
func (x *exchange) swap() {
	for _, s := range []isa.Segment{isa.SegGrad, isa.SegTGrad} {
		x.e.ranks.device.memory.SwapSums(s)
	}
	x.swapped = !x.swapped
}

// notANumber is the bits of NaN.
const notANumber = 0x7fc00000

// place finds out what is summed, and from where to where. What this rank has is summed from where it lies, unless it has
// less than the union.
func (x *exchange) place() error {
	d := x.e.ranks.device
	d.ranges, d.before, d.behind = d.ranges[:0], d.before[:0], d.behind[:0]
	direct, rows := x.share != 0, uint64(0)
	for i := range x.params {
		y := &x.params[i]
		direct = direct && (y.own.whole || !y.all.whole)
		if !y.all.whole {
			rows += uint64(y.all.floats(y.parameter))
		}
	}
	for i := range x.params {
		y := &x.params[i]
		own, sums, err := d.addresses(y) // also of tables: both segments change places with their sums
		switch {
		case err != nil:
			return err
		case !y.all.whole:
			continue
		case direct:
			d.sum(own, sums, y.Size)
			continue
		}
		d.sum(sums, sums, y.Size)
		if err := d.memory.Fill(sums, 0, uint64(y.Size)); err != nil {
			return err
		}
		x.give(y, own, sums, 4)
	}
	if err := x.placeRows(rows); err != nil {
		return err
	}
	return d.memory.Move(d.before)
}

// addresses are those of a parameter's gradient and of its sums.
func (d *onDevice) addresses(y *exchanged) (own, sums executor.Address, err error) {
	own, sums, err = d.memory.Sums(y.segment(Gradient))
	return own + 4*uint64(y.Offset), sums + 4*uint64(y.Offset), err
}

// give lists the copies of this rank's part of a gradient to a buffer, whose numbers have this size in bytes.
func (x *exchange) give(y *exchanged, own, buffer executor.Address, bytes uint64) {
	if d := x.e.ranks.device; x.share != 0 {
		for s := range y.places(y.own) {
			d.before = append(d.before, executor.Run{From: own + 4*s.offset, To: buffer + bytes*s.at, N: s.n})
		}
	}
}

// take lists the copies of a gradient's sums from a buffer to the segment that the update reads.
func (d *onDevice) take(y *exchanged, buffer, sums executor.Address, bytes uint64) {
	for s := range y.places(y.all) {
		d.behind = append(d.behind, executor.Run{From: buffer + bytes*s.at, To: sums + 4*s.offset, N: s.n})
	}
}

// sum adds floats to the ranges, and to the last of them if they lie next to it on all ranks.
func (d *onDevice) sum(from, to executor.Address, n uint32) {
	if k := len(d.ranges) - 1; k >= 0 && d.alike {
		last := &d.ranges[k]
		gap := uint64(from) - last.From - 4*last.N
		if gap < 4*places && uint64(to)-last.To == uint64(from)-last.From {
			last.N += gap/4 + uint64(n)
			return
		}
	}
	d.ranges = append(d.ranges, gpu.Range{From: from, To: to, N: uint64(n)})
}

// placeRows does that for the rows of tables, n floats in all, which are summed one after the other.
func (x *exchange) placeRows(n uint64) error {
	if n == 0 {
		return nil
	}
	d := x.e.ranks.device
	packed, err := d.memory.Packed(n)
	if err == nil {
		err = d.memory.Fill(packed, 0, n)
	}
	if err != nil {
		return err
	}
	d.ranges = append(d.ranges, gpu.Range{From: packed, To: packed, N: n})
	for i := range x.params {
		y := &x.params[i]
		if y.all.whole {
			continue
		}
		own, sums, err := d.addresses(y)
		if err != nil {
			return err
		}
		x.give(y, own, packed, 4)
		d.take(y, packed, sums, 4)
		packed += 4 * uint64(y.all.floats(y.parameter))
	}
	return nil
}
