package persist

import (
	"iter"
	"math"
	mathbits "math/bits"
	"slices"

	"libvpps/jit/kernel"
	"libvpps/persist/comm"
)

// The exchange of gradients: between backward and norm, each parameter's gradient becomes the sum over all ranks. A table's
// has the rows that any rank has. What the rank had itself is kept, in case the step fails: here in host memory, else where
// it lies (parallel_device.go).

// exchange is one step's.
type exchange struct {
	e      *Engine
	params []exchanged
	own    int     // floats: of this rank's gradients
	total  int     // of the sums
	share  float32 // how often this rank's gradients count; 0: it gives nothing

	swapped bool // launches find the sums, on the device
}

// exchanged is a parameter of it.
type exchanged struct {
	*parameter
	id       uint32
	own, all pendingRows // this rank's, and the union
}

// gradientsOf lists what this rank has to exchange.
func (t *Trainer) gradientsOf() (list []pendingRows) {
	for _, id := range t.ids {
		list = append(list, t.e.params[id].pending())
	}
	return list
}

// unite finds out what is exchanged of the trainer's parameters. A rank that joins gives nothing, and keeps what it has.
func (s *step) unite(all []notice) (*exchange, error) {
	x := &exchange{e: s.e}
	own := s.notice.gradients
	if own == nil {
		own = s.trainer.gradientsOf()
	}
	for k, id := range s.ids {
		p := &s.e.params[id]
		for rank := range all {
			if all[rank].call == joining {
				continue
			}
			if len(all[rank].gradients) != len(s.ids) || !all[rank].gradients[k].fits(p) {
				return nil, wrong(ErrRank, "rank %d: %v", rank, errNotice)
			}
		}
		if p.Size == 0 {
			continue
		}
		y := exchanged{p, id, pendingRows{own[k].whole, slices.Clone(own[k].rows)}, unionOf(p, all, k)}
		x.params = append(x.params, y)
		x.own += y.own.floats(p)
		x.total += y.all.floats(p)
	}
	return x, nil
}

// fits reports whether a parameter can have such a part.
func (r *pendingRows) fits(p *parameter) bool {
	if len(r.rows) == 0 {
		return true
	}
	return p.Lookup && slices.IsSorted(r.rows) && r.rows[len(r.rows)-1] < p.Size/p.Row
}

// unionOf is what any of the ranks has of their k-th parameter. Each row is marked, for hundreds of ranks may have most.
func unionOf(p *parameter, all []notice, k int) (u pendingRows) {
	var marks []uint64
	for rank := range all {
		if all[rank].call == joining {
			continue
		}
		part := &all[rank].gradients[k]
		if part.whole {
			return pendingRows{whole: true}
		}
		if marks == nil && len(part.rows) > 0 {
			marks = make([]uint64, (p.Size/p.Row+63)/64)
		}
		for _, row := range part.rows {
			marks[row/64] |= 1 << (row % 64)
		}
	}
	for at, word := range marks {
		for ; word != 0; word &= word - 1 {
			u.rows = append(u.rows, uint32(64*at+mathbits.TrailingZeros64(word)))
		}
	}
	return u
}

// prepare does what can be done before the gradients are there.
func (x *exchange) prepare() error {
	r := x.e.ranks
	switch {
	case r.device != nil && r.bf16:
		return x.placeBF16()
	case r.device != nil:
		return x.place()
	}
	if err := enlarge(&r.mine, x.own); err != nil {
		return err
	}
	return enlarge(&r.sum, x.total)
}

// sum puts the sums of all ranks' gradients in place of this one's. If this rank's are bad, the sums are not finite. Nothing
// has changed if it fails. Where devices are connected, the notice of the step behind goes to all, if there is one, and
// theirs come, if each has given one; else nil.
func (x *exchange) sum(bad bool, next *notice) (behind []notice, err error) {
	if x.e.ranks.device != nil {
		return x.sumOnDevice(bad, next)
	}
	return nil, x.sumOnHost(bad)
}

func (x *exchange) sumOnHost(bad bool) error {
	r := x.e.ranks
	sum := r.sum[:x.total]
	clear(sum)
	if err := x.readOwn(); err != nil {
		return err
	}
	if x.share != 0 {
		x.addOwn(sum, x.share)
	}
	if bad {
		sum[0] = float32(math.NaN())
	}
	allReduce := r.comm.AllReduce
	if r.bf16 {
		allReduce = r.comm.(comm.OnHost).AllReduceBF16 // as all are that sum here
	}
	if err := allReduce(sum); err != nil {
		return wrong(ErrRank, "%v", err)
	}
	return x.put(sum)
}

// enlarge makes a buffer of C memory have n floats.
func enlarge(buffer *[]float32, n int) error {
	if n <= len(*buffer) {
		return nil
	}
	kernel.FreeFloats(*buffer)
	if *buffer = kernel.Floats(n); *buffer == nil {
		return wrong(ErrMemory, "no memory for the gradients to exchange, %d bytes", 4*uint64(n))
	}
	return nil
}

// readOwn keeps this rank's gradients.
func (x *exchange) readOwn() error {
	rest := x.e.ranks.mine
	for i := range x.params {
		y := &x.params[i]
		if err := y.own.transfer(y.parameter, rest, x.e.exec.Read); err != nil {
			return err
		}
		rest = rest[y.own.floats(y.parameter):]
	}
	return nil
}

// addOwn writes this rank's gradients to their places among those of the union.
func (x *exchange) addOwn(sum []float32, share float32) {
	mine := x.e.ranks.mine
	for i := range x.params {
		y := &x.params[i]
		for s := range y.places(y.own) {
			to := sum[s.at:][:s.n]
			for k, v := range mine[:s.n] {
				to[k] = share * v
			}
			mine = mine[s.n:]
		}
		sum = sum[y.all.floats(y.parameter):]
	}
}

// placed is a span of a gradient, in floats, and where it lies in a buffer that has the union's spans one after the other.
type placed struct{ offset, at, n uint64 }

// places are those of a part of the gradient.
func (y *exchanged) places(part pendingRows) iter.Seq[placed] {
	return func(yield func(placed) bool) {
		next := 0 // of the union's rows
		for offset, n := range part.spans(y.parameter) {
			at := uint64(offset)
			if !y.all.whole {
				for y.all.rows[next] != offset/y.Row {
					next++
				}
				at = uint64(next) * uint64(y.Row)
			}
			if !yield(placed{uint64(offset), at, uint64(n)}) {
				return
			}
		}
	}
}

// put replaces the gradients by the sums.
func (x *exchange) put(sum []float32) error {
	for i := range x.params {
		y := &x.params[i]
		if err := y.all.transfer(y.parameter, sum, x.e.exec.Write); err != nil {
			return err
		}
		sum = sum[y.all.floats(y.parameter):]
	}
	return nil
}

// setPending says which part of the gradient is there from now on.
func (y *exchanged) setPending(part pendingRows) {
	y.gradientChanged()
	y.Pending, y.Rows = part.whole, part.rows
	y.gradientChanged()
}

// back gives the rank its own gradients again: all of them, or those of parameters that trainers leave alone.
func (x *exchange) back(all bool) error {
	if x.e.ranks.device != nil {
		if x.swapped {
			x.swap()
		}
		return nil
	}
	mine := x.e.ranks.mine
	for i := range x.params {
		y := &x.params[i]
		p := y.parameter
		if all || !p.Updated {
			if p.shared { // elements that are not pending are zero there
				x.e.clearShared(p, y.all)
			}
			if err := y.own.transfer(p, mine, x.e.exec.Write); err != nil {
				return err
			}
		}
		mine = mine[y.own.floats(p):]
	}
	return nil
}
