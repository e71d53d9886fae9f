package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"libvpps/persist/example"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

func ownExample(t testing.TB) *example.Example {
	t.Helper()
	e, err := example.OwnExample()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestVerifyAcceptsTheOwnExample(t *testing.T) {
	e := ownExample(t)
	text := isa.Disassemble(e.Script)
	if err := Verify(e.Script, e.Plan); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{"processor 1: from word ", "map.tanh sync", "product bias listed", "product_t sync listed", "apart=7", "live-in", "halt"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no %q:\n%s", want, text)
		}
	}
}

// pair is a small sound script that the damage below is done to: processor 0 writes a
// vector, processor 1 reads it behind a barrier and both use it afterwards.
type pair struct {
	*isa.Assembler
	plan *plan.Plan
}

func newPair(t testing.TB) *pair {
	t.Helper()
	p, err := plan.Sliced([]plan.Matrix{{Name: "W", Rows: 4, Cols: 8, Offset: 0}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	a := isa.NewAssembler(2)
	a.Tensor(isa.SegParam, isa.LiveIn, 0, 32)
	a.Tensor(isa.SegGrad, isa.LiveIn, 0, 32)
	a.Tensor(isa.SegAct, 0, 0, 8)  // a
	a.Tensor(isa.SegAct, 0, 8, 8)  // b
	a.Tensor(isa.SegAct, 0, 16, 8) // c
	a.Tensor(isa.SegAct, isa.LiveIn, 24, 16)
	a.Tensor(isa.SegResult, 0, 0, 4)
	return &pair{a, p}
}

func (p *pair) fill(proc int, at uint32, flags uint32) {
	p.Do(proc, isa.Fill, 0, flags, []uint32{isa.Segs(isa.SegAct), 8, isa.Float(1)}, []uint32{at})
}

func (p *pair) copy(proc int, to, from uint32, flags uint32) {
	p.Do(proc, isa.Map, uint8(isa.Copy), flags, []uint32{isa.Segs(isa.SegAct, isa.SegAct), 8, 0, 0}, []uint32{to, from})
}

// commit lets a processor take the norm of W's gradient and decide by it.
func (p *pair) commit(proc int) {
	p.Do(proc, isa.Norm, 0, 0, []uint32{isa.Segs(isa.SegAct, isa.SegGrad), 0}, []uint32{0, 32})
	p.Do(proc, isa.Clip, 0, isa.Sync, []uint32{isa.Segs(isa.SegResult, isa.SegAct), 0, 1, isa.Float(5), 0, 0})
}

// report lets a processor form a loss and copy it to where the host reads it.
func (p *pair) report(proc int) {
	p.fill(proc, 8, 0)
	p.Do(proc, isa.Map, uint8(isa.Copy), isa.Sync, []uint32{isa.Segs(isa.SegResult, isa.SegAct), 1, 0, 0}, []uint32{3, 8})
}

// judge is commit by that loss.
func (p *pair) judge(proc int) {
	p.Do(proc, isa.Norm, 0, 0, []uint32{isa.Segs(isa.SegAct, isa.SegGrad), 0}, []uint32{0, 32})
	p.Do(proc, isa.Clip, 0, isa.Sync|isa.Loss, []uint32{isa.Segs(isa.SegResult, isa.SegAct, isa.SegAct), 0, 1, isa.Float(5), 0, 8})
}

// streamed leaves W in memory: each processor forms its rows of a product and its columns of a transposed one.
func (p *pair) streamed() {
	p.plan.Where = []plan.Residence{{Kind: plan.Streamed, Rows: 2, Columns: 4}}
}

// chain appends a chain of slots a, b and c over 4 elements; a and b are read, b is written, c is nowhere.
func (p *pair) chain(flags uint32, operations []uint32, places ...uint32) {
	var words []uint32
	for _, w := range operations {
		words = append(words, w, isa.Float(1), 0)
	}
	a := uint32(isa.SegAct)
	p.Chain(0, flags, 4, []uint32{a | isa.ChainRead, a | isa.ChainRead | isa.ChainWritten, a}, words, slices.Collect(slices.Chunk(places, 3))...)
}

// partials lets each processor write a partial result of 8 elements, one behind the other, and signal.
func (p *pair) partials() {
	for i := range 2 {
		p.fill(i, uint32(24+8*i), 0)
		p.Signal(i, 0)
	}
}

// sum appends a Sum of 8 elements at 0 from count vectors that lie behind each other.
func (p *pair) sum(proc int, flags, count, from uint32) { p.sumSome(proc, flags, 0, 8, count, from) }

// sumSlice is the same of the processor's half of the elements.
func (p *pair) sumSlice(proc int, flags, count, from uint32) {
	p.sumSome(proc, flags, 4*uint32(proc), 4, count, from)
}

func (p *pair) sumSome(proc int, flags, first, n, count, from uint32) {
	p.Do(proc, isa.Sum, 0, flags, []uint32{act, n, isa.Float(1), first, 1 | count<<16, 8, 0}, []uint32{from + first})
}

// transposed lets both processors form the transposed product in one place.
func (p *pair) transposed() {
	for i := range 2 {
		p.Do(i, isa.ProductT, 0, 0, []uint32{act, 0, isa.Float(1), 0}, []uint32{0, 24})
	}
}

func (p *pair) update(proc int) {
	p.Do(proc, isa.Update, 0, 0, []uint32{isa.Segs(isa.SegParam, isa.SegGrad), isa.Float(1), 0, 0, 0}, []uint32{0, 0, 32})
}

// make2 is items of two words.
func make2(n int) [][]uint32 {
	items := make([][]uint32, n)
	for i := range items {
		items[i] = []uint32{0, 24}
	}
	return items
}

var act = isa.Segs(isa.SegAct, isa.SegAct, isa.SegAct)

func TestVerify(t *testing.T) {
	cases := []struct {
		name  string
		build func(p *pair)
		want  string // in the error; empty: sound
	}{
		{"nothing to do", func(p *pair) {}, ""},
		{"write, signal, wait, read", func(p *pair) {
			p.fill(0, 0, 0)
			p.Signal(0, 0)
			p.Wait(1, 0, 1)
			p.copy(1, 8, 0, 0)
		}, ""},
		{"read through a chain of barriers", func(p *pair) {
			p.fill(0, 0, 0)
			p.Signal(0, 0)
			p.Wait(1, 0, 1)
			p.Signal(1, 1)
			p.Wait(0, 1, 1)
			p.copy(0, 8, 0, 0)
		}, ""},
		{"in place", func(p *pair) { p.copy(0, 24, 24, 0) }, ""},
		{"two items add to the same vector", func(p *pair) {
			p.fill(0, 0, 0)
			p.Do(0, isa.Gemm, 0, isa.Acc|isa.Sync, []uint32{act, 2, 2, 2, 1, 2, 1, 2, 1, 2, isa.Float(1), 0}, []uint32{0, 24, 28}, []uint32{0, 32, 36})
		}, ""},
		{"a matrix updated after its last use", func(p *pair) {
			for i := range uint32(2) {
				p.Do(int(i), isa.ProductT, 0, 0, []uint32{act, 0, isa.Float(1), 0}, []uint32{8 * i, 24})
				p.Signal(int(i), 0)
			}
			p.Wait(0, 0, 2)
			p.commit(0)
			p.update(0)
		}, ""},
		{"a product after an update", func(p *pair) {
			p.commit(0)
			p.update(0)
			p.Do(0, isa.ProductT, 0, 0, []uint32{act, 0, isa.Float(1), 0}, []uint32{8, 24})
		}, "(product_t): it comes after gradients of parameters or updates, where matrices are no longer there"},

		{"no wait", func(p *pair) {
			p.fill(0, 0, 0)
			p.Signal(0, 0)
			p.copy(1, 8, 0, 0)
		}, "read before it is written"},
		{"read races with an earlier write", func(p *pair) {
			p.fill(1, 0, 0)
			p.copy(0, 8, 0, 0)
		}, "is read, but not ordered after processor 1, instruction 0 wrote it"},
		{"overwrite races with a read", func(p *pair) {
			p.copy(1, 0, 24, 0)
			p.fill(0, 24, 0)
		}, "overwritten, but not ordered after processor 1, instruction 0 read it"},
		{"two processors write", func(p *pair) {
			p.fill(0, 0, 0)
			p.fill(1, 0, 0)
		}, "overwritten, but not ordered after processor 1, instruction 0 wrote it"},
		{"no sync between dependent instructions", func(p *pair) {
			p.fill(0, 0, 0)
			p.copy(0, 8, 0, 0)
		}, "not ordered after processor 0, instruction 0 wrote it"},
		{"no sync before overwriting what was read", func(p *pair) {
			p.copy(0, 0, 24, 0)
			p.fill(0, 24, 0)
		}, "not ordered after processor 0, instruction 0 read it"},
		{"never written", func(p *pair) { p.copy(0, 8, 0, 0) }, "act+0 (element 0 of tensor 2) is read before it is written"},
		{"a deadlock of two waits", func(p *pair) {
			p.Wait(0, 0, 1)
			p.Signal(0, 1)
			p.Wait(1, 1, 1)
			p.Signal(1, 0)
		}, "deadlock: barrier 0 has 0 of 1 signals"},
		{"a signal too few", func(p *pair) {
			p.Signal(0, 0)
			p.Wait(1, 0, 2)
		}, "expects 2 signals at barrier 0, but the script sends 1"},
		{"a signal too many", func(p *pair) {
			p.Signal(0, 0)
			p.Signal(0, 0)
			p.Wait(1, 0, 1)
		}, "expects 1 signals at barrier 0, but the script sends 2"},
		{"outside every tensor", func(p *pair) { p.fill(0, 1000, 0) }, "act+1000 is in no tensor"},
		{"over a tensor's end", func(p *pair) { p.fill(0, 4, 0) }, "act+4..11 leaves tensor 2"},
		{"a segment that does not exist", func(p *pair) {
			p.Do(0, isa.Fill, 0, 0, []uint32{15, 8, 0}, []uint32{0})
		}, "slot 0 is in segment 15"},
		{"items that write the same vector", func(p *pair) {
			p.Do(0, isa.Map, uint8(isa.Copy), 0, []uint32{act, 8, 0, 0}, []uint32{0, 24}, []uint32{0, 32})
		}, "written by items 0 and 1"},
		{"items that add to the same vector on different warps", func(p *pair) {
			p.Do(0, isa.Map, uint8(isa.Copy), isa.Acc, []uint32{act, 4, 0, 0}, []uint32{24, 32}, []uint32{24, 36})
		}, "written by items 0 and 1"},
		{"items that add to overlapping vectors", func(p *pair) {
			p.Do(0, isa.Map, uint8(isa.Copy), isa.Acc, []uint32{act, 4, 0, 0}, []uint32{24, 32}, []uint32{26, 36})
		}, "written by items 0 and 1"},
		{"an item reads what another writes", func(p *pair) {
			p.Do(0, isa.Map, uint8(isa.Copy), 0, []uint32{act, 8, 0, 0}, []uint32{0, 24}, []uint32{24, 32})
		}, "read by item 0 and written by item 1"},
		{"shifted in place", func(p *pair) {
			p.Do(0, isa.Map, uint8(isa.Copy), 0, []uint32{act, 7, 0, 0}, []uint32{24, 25})
		}, "read and written by different threads of one item"},
		{"overlapping strides of a result", func(p *pair) {
			p.Do(0, isa.Strided, uint8(isa.Copy), 0, []uint32{act, 2, 0, 0, 2, 3, 1, 1, 1, 1}, []uint32{0, 24})
		}, "written twice by one operand"},
		{"a product over its own input", func(p *pair) {
			p.Do(0, isa.Product, 0, 0, []uint32{act, 0, isa.Float(1), 0, 0}, []uint32{24, 24})
		}, "read and written by different threads"},
		{"an unknown matrix", func(p *pair) {
			p.Do(0, isa.Product, 0, 0, []uint32{act, 1, isa.Float(1), 0, 0}, []uint32{0, 24})
		}, "matrix 1: the plan has 1"},
		{"a matrix updated while another processor loads it", func(p *pair) {
			p.commit(0)
			p.update(0)
			p.Signal(0, 0)
			p.Wait(1, 0, 1)
			p.Do(1, isa.Product, 0, isa.Sync, []uint32{act, 0, isa.Float(1), 0, 0}, []uint32{0, 24})
		}, "matrix 0 is overwritten, but not ordered after processor 1 (loading"},
		{"a matrix updated that nobody multiplies with", func(p *pair) {
			p.commit(0)
			p.update(0)
		}, ""},
		{"a product after its matrix was updated", func(p *pair) {
			p.Signal(1, 0)
			p.Wait(0, 0, 1)
			p.commit(0)
			p.update(0)
			p.Signal(0, 1)
			p.Wait(1, 1, 1)
			p.Do(1, isa.Product, 0, isa.Sync, []uint32{act, 0, isa.Float(1), 0, 0}, []uint32{0, 24})
		}, "registers hold it as it was"},
		{"columns of a transposed product in one place", func(p *pair) {
			p.streamed()
			p.transposed()
		}, ""},
		{"partial results of a transposed product in one place", func(p *pair) {
			p.transposed()
		}, "overwritten, but not ordered after processor"},
		{"columns read before all are there", func(p *pair) {
			p.streamed()
			p.transposed()
			p.copy(0, 8, 0, isa.Sync)
		}, "not ordered after processor 1, instruction 0 wrote it"},
		{"a streamed matrix that is updated meanwhile", func(p *pair) {
			p.streamed()
			p.Do(1, isa.Product, 0, 0, []uint32{act, 0, isa.Float(1), 0, 0}, []uint32{0, 24})
			p.commit(0)
			p.update(0)
		}, "overwritten, but not ordered after processor 1, instruction 0 read it"},
		{"a streamed matrix that is updated while it is transposed", func(p *pair) {
			p.streamed()
			p.Do(1, isa.ProductT, 0, 0, []uint32{act, 0, isa.Float(1), 0}, []uint32{0, 24})
			p.commit(0)
			p.update(0)
		}, "overwritten, but not ordered after processor 1, instruction 0 read it"},
		{"an update without a clip", func(p *pair) {
			p.update(0)
		}, "there is no clip before it on this processor"},
		{"an update by a processor that did not clip", func(p *pair) {
			p.commit(1)
			p.Signal(1, 0)
			p.Wait(0, 0, 1)
			p.update(0)
		}, "there is no clip before it on this processor"},
		{"an update of what no norm has read", func(p *pair) {
			p.Do(0, isa.Norm, 0, 0, []uint32{isa.Segs(isa.SegAct, isa.SegGrad), 0}, []uint32{0, 31})
			p.Do(0, isa.Clip, 0, isa.Sync, []uint32{isa.Segs(isa.SegResult, isa.SegAct), 0, 1, isa.Float(5), 0, 0})
			p.update(0)
		}, "grad+31 (element 31 of tensor 1) is applied, but is in no norm that the clip before it sums"},
		{"a clip that leaves out a norm", func(p *pair) {
			p.Do(0, isa.Norm, 0, 0, []uint32{isa.Segs(isa.SegAct, isa.SegGrad), 0}, []uint32{0, 16})
			p.Do(0, isa.Norm, 0, 0, []uint32{isa.Segs(isa.SegAct, isa.SegGrad), 2}, []uint32{16, 16})
			p.Do(0, isa.Clip, 0, isa.Sync, []uint32{isa.Segs(isa.SegResult, isa.SegAct), 0, 1, isa.Float(5), 0, 0})
			p.update(0)
		}, "grad+16 (element 16 of tensor 1) is applied"},
		{"a gradient that changes after its norm", func(p *pair) {
			p.commit(0)
			p.Do(0, isa.Fill, 0, isa.Sync, []uint32{isa.Segs(isa.SegGrad), 1, isa.Float(1)}, []uint32{3})
			p.Do(0, isa.Update, 0, isa.Sync, []uint32{isa.Segs(isa.SegParam, isa.SegGrad), isa.Float(1), 0, 0, 0}, []uint32{0, 0, 32})
		}, "grad+3 (element 3 of tensor 1) is applied"},
		{"a clip that does not know of the loss", func(p *pair) {
			p.report(0)
			p.commit(0)
			p.update(0)
		}, "decides without the loss"},
		{"a loss that is reported behind the clip", func(p *pair) {
			p.commit(0)
			p.update(0)
			p.report(0)
		}, "decides without the loss"},
		{"a clip by the loss", func(p *pair) {
			p.report(0)
			p.judge(0)
			p.update(0)
		}, ""},
		{"a clip by a loss that nobody has written", func(p *pair) {
			p.judge(0)
			p.update(0)
		}, "act+8 (element 0 of tensor 3) is read before it is written"},
		{"a clip by a loss of another processor, for which it does not wait", func(p *pair) {
			p.report(1)
			p.judge(0)
			p.update(0)
		}, "act+8 (element 0 of tensor 3) is read, but not ordered after processor 1, instruction 0 wrote it"},
		{"a norm in two parts", func(p *pair) {
			p.Do(0, isa.Norm, 0, 0, []uint32{isa.Segs(isa.SegAct, isa.SegGrad), 0}, []uint32{0, 16})
			p.Do(0, isa.Norm, 0, isa.Acc|isa.Sync, []uint32{isa.Segs(isa.SegAct, isa.SegGrad), 0}, []uint32{16, 16})
			p.Do(0, isa.Clip, 0, isa.Sync, []uint32{isa.Segs(isa.SegResult, isa.SegAct), 0, 1, isa.Float(5), 0, 0})
			p.update(0)
		}, ""},
		{"a label beyond its rows", func(p *pair) {
			p.Do(0, isa.Row, uint8(isa.NegLogPick), 0, []uint32{act, 8, 1, 0, 1}, []uint32{0, 24, 8, 8})
		}, "label 8 of 8 rows"},
		{"items in a list", func(p *pair) {
			p.DoListed(0, isa.Product, 0, []uint32{act, 0, isa.Float(1), 0, 0}, []uint32{0, 24}, []uint32{8, 32})
			p.DoListed(1, isa.Product, 0, []uint32{act, 0, isa.Float(1), 0, 0}, []uint32{0, 24}, []uint32{8, 32})
		}, ""},
		{"listed items that write what others read", func(p *pair) {
			p.DoListed(0, isa.Product, 0, []uint32{act, 0, isa.Float(1), 0, 0}, []uint32{24, 24})
		}, "read and written by different threads"},
		{"a list that begins behind the lists", func(p *pair) {
			p.DoListed(0, isa.Product, 0, []uint32{act, 0, isa.Float(1), 0, 0}, []uint32{0, 24})
			p.Streams[0][7] += 2
		}, "processor 0, instruction 0 (product): its items are words 14 to 16 of the script, but the lists are words 12 to 14"},
		{"a list that begins before the lists", func(p *pair) {
			p.DoListed(0, isa.Outer, 0, []uint32{act, 0, isa.Float(1), 0}, []uint32{24, 24})
			p.Streams[0][6] -= 1
		}, "its items are words 11 to 13 of the script, but the lists are words 12 to 14"},
		{"a list shorter than the instruction says", func(p *pair) {
			p.DoListed(0, isa.ProductT, 0, []uint32{act, 0, isa.Float(1), 0}, []uint32{8, 24})
			p.Streams[0][1] = 7 | 2<<16
		}, "its items are words 12 to 16 of the script, but the lists are words 12 to 14"},
		{"more listed items than fit", func(p *pair) {
			p.DoListed(0, isa.ProductT, 0, []uint32{act, 0, isa.Float(1), 0}, make2(isa.MaxListed/2+1)...)
		}, "1022 words of listed items: at most 1021"},
		{"a listed instruction with items", func(p *pair) {
			p.Do(0, isa.ProductT, 0, isa.Listed, []uint32{act, 0, isa.Float(1), 0}, []uint32{8, 24})
		}, "8 words, but with listed items it is 7"},
		{"listed items of an instruction that has none", func(p *pair) {
			p.Do(0, isa.Fill, 0, isa.Listed, []uint32{act, 8, 0}, []uint32{0})
		}, "fill cannot have flag listed"},
		{"a sum of runs", func(p *pair) {
			p.Do(0, isa.Sum, 0, 0, []uint32{act, 2, isa.Float(1), 0, 1 | 4<<16, 4, 0}, []uint32{24}, []uint32{30})
		}, ""},
		{"a run over its tensor's end", func(p *pair) {
			p.Do(0, isa.Sum, 0, 0, []uint32{act, 2, isa.Float(1), 0, 1 | 5<<16, 4, 0}, []uint32{24}, []uint32{30})
		}, "act+24..41 leaves tensor 5"},
		{"a run over what others write", func(p *pair) {
			p.fill(1, 0, 0)
			p.Signal(1, 0)
			p.Do(0, isa.Sum, 0, 0, []uint32{act, 4, isa.Float(1), 8, 1 | 2<<16, 4, 0}, []uint32{0})
			p.Wait(0, 0, 1)
		}, "act+0 (element 0 of tensor 2)"},
		{"more runs than items", func(p *pair) {
			p.Do(0, isa.Sum, 0, 0, []uint32{act, 2, isa.Float(1), 0, 3 | 2<<16, 4, 0}, []uint32{24}, []uint32{30})
		}, "3 runs, but 2 items"},
		{"runs of nothing", func(p *pair) {
			p.Do(0, isa.Sum, 0, 0, []uint32{act, 2, isa.Float(1), 0, 1, 4, 0}, []uint32{24})
		}, "runs of 0 sources: 1 to 1024"},
		{"partial results added in slices", func(p *pair) {
			p.partials()
			for i := range 2 {
				p.Wait(i, 0, 2)
				p.sumSlice(i, 0, 2, 24)
			}
		}, ""},
		{"a neighbour's partial result added before it signalled", func(p *pair) {
			p.partials()
			p.sumSlice(0, isa.Sync, 2, 24)
		}, "act+32 (element 8 of tensor 5) is read, but not ordered after processor 1, instruction 0 wrote it"},
		{"one's own partial result added", func(p *pair) {
			p.partials()
			p.sumSlice(0, isa.Sync, 1, 24)
		}, ""},
		{"a neighbour's slice added before it signalled", func(p *pair) {
			for i := range 2 {
				p.Do(i, isa.Fill, 0, 0, []uint32{act, 4, isa.Float(1)}, []uint32{24 + 4*uint32(i)})
			}
			p.sum(0, isa.Sync, 1, 24)
		}, "act+28 (element 4 of tensor 5) is read, but not ordered after processor 1, instruction 0 wrote it"},
		{"sums in one vector by all", func(p *pair) {
			p.sum(0, 0, 1, 24)
			p.sum(1, 0, 1, 24)
		}, "overwritten, but not ordered after processor 1, instruction 0 wrote it"},
		{"a chain", func(p *pair) {
			p.chain(isa.Sync, []uint32{isa.ChainOp(isa.Tanh, 2, 0, 0, 0, false), isa.ChainOp(isa.Add, 1, 1, 2, 0, true)}, 24, 32, 9999)
			p.copy(0, 0, 32, isa.Sync)
		}, ""},
		{"items of a chain", func(p *pair) {
			p.chain(0, []uint32{isa.ChainOp(isa.Copy, 1, 0, 0, 0, false)}, 24, 32, 0, 28, 36, 0)
		}, ""},
		{"a chain without operations", func(p *pair) { p.chain(0, nil, 24, 32, 0) }, "no operations"},
		{"a chain without slots", func(p *pair) {
			p.Chain(0, 0, 4, nil, []uint32{isa.ChainOp(isa.Copy, 0, 0, 0, 0, false), 0, 0})
		}, "0 slots: a chain has 1 to 32"},
		{"a chain of too many slots", func(p *pair) {
			p.Chain(0, 0, 4, make([]uint32, isa.MaxSlots+1), []uint32{isa.ChainOp(isa.Copy, 0, 0, 0, 0, false), 0, 0})
		}, "33 slots: a chain has 1 to 32"},
		{"a chain's unknown function", func(p *pair) { p.chain(0, []uint32{isa.ChainOp(isa.Fns, 1, 0, 0, 0, false)}, 24, 32, 0) }, fmt.Sprintf("operation 0: function %d: there are %[1]d", isa.Fns)},
		{"a chain's unknown slot", func(p *pair) { p.chain(0, []uint32{isa.ChainOp(isa.Copy, 3, 0, 0, 0, false)}, 24, 32, 0) }, "operation 0: slot 3: there are 3"},
		{"a chain's unknown input", func(p *pair) { p.chain(0, []uint32{isa.ChainOp(isa.Mul, 1, 0, 4, 0, false)}, 24, 32, 0) }, "operation 0: slot 4: there are 3"},
		{"an input too many in a chain", func(p *pair) { p.chain(0, []uint32{isa.ChainOp(isa.Tanh, 1, 0, 1, 0, false)}, 24, 32, 0) }, "has bits that tanh has no use for"},
		{"a slot used before it has a value", func(p *pair) {
			p.chain(0, []uint32{isa.ChainOp(isa.Mul, 1, 0, 2, 0, false), isa.ChainOp(isa.Copy, 2, 0, 0, 0, false)}, 24, 32, 0)
		}, "operation 0: slot 2 has no value yet"},
		{"a slot added to before it has a value", func(p *pair) { p.chain(0, []uint32{isa.ChainOp(isa.Copy, 2, 0, 0, 0, true)}, 24, 32, 0) }, "operation 0: slot 2 is added to, but has no value yet"},
		{"a slot written that is no result", func(p *pair) { p.chain(0, []uint32{isa.ChainOp(isa.Copy, 2, 0, 0, 0, false)}, 24, 32, 0) }, "slot 1 is written, but is no operation's result"},
		{"unknown bits of a chain's slot", func(p *pair) {
			p.Chain(0, 0, 4, []uint32{uint32(isa.SegAct) | 0x40}, []uint32{isa.ChainOp(isa.Copy, 0, 0, 0, 0, false), 0, 0}, []uint32{24})
		}, "slot 0: unknown bits 0x44"},
		{"a chain's unknown segment", func(p *pair) {
			p.Chain(0, 0, 4, []uint32{9 | isa.ChainRead}, []uint32{isa.ChainOp(isa.Copy, 0, 0, 0, 0, false), 0, 0}, []uint32{24})
		}, "slot 0 is in segment 9"},
		{"slots of a chain that overlap", func(p *pair) { p.chain(0, []uint32{isa.ChainOp(isa.Copy, 1, 0, 0, 0, false)}, 24, 27, 0) }, "item 0: the vectors of slots 0 and 1 overlap, and slot 1 is written"},
		{"slots of a chain in one place", func(p *pair) { p.chain(0, []uint32{isa.ChainOp(isa.Copy, 1, 0, 0, 0, false)}, 24, 24, 0) }, "item 0: the vectors of slots 0 and 1 overlap"},
		{"items of a chain in one place", func(p *pair) {
			p.chain(0, []uint32{isa.ChainOp(isa.Copy, 1, 0, 0, 0, false)}, 24, 32, 0, 28, 32, 0)
		}, "written by items 0 and 1"},
		{"an item of a chain that reads what another writes", func(p *pair) {
			p.chain(0, []uint32{isa.ChainOp(isa.Copy, 1, 0, 0, 0, false)}, 24, 32, 0, 32, 28, 0)
		}, "read by item 1 and written by item 0"},
		{"a chain over its tensor's end", func(p *pair) { p.chain(0, []uint32{isa.ChainOp(isa.Copy, 1, 0, 0, 0, false)}, 24, 38, 0) }, "act+38..41 leaves tensor 5"},
		{"a chain that adds", func(p *pair) { p.chain(isa.Acc, []uint32{isa.ChainOp(isa.Copy, 1, 0, 0, 0, false)}, 24, 32, 0) }, "chain can have no flag but sync"},
		{"a chain of less words than it says", func(p *pair) {
			p.chain(0, []uint32{isa.ChainOp(isa.Copy, 1, 0, 0, 0, false)}, 24, 32, 0)
			p.Streams[0][3] = 0xFFFFFFFF
		}, "11 words, but 1 items take"},
		{"an unknown opcode", func(p *pair) { p.Do(0, isa.Opcode(isa.Opcodes), 0, 0, nil) }, "processor 0, instruction 0 (opcode 17)"},
		{"an unknown function", func(p *pair) { p.Do(0, isa.Map, 200, 0, []uint32{act, 8, 0, 0}, []uint32{0, 24}) }, "function 200"},
		{"an unknown flag", func(p *pair) { p.fill(0, 0, 1<<8) }, "unknown flags"},
		{"an item too short", func(p *pair) { p.Do(0, isa.Map, uint8(isa.Copy), 0, []uint32{act, 8, 0, 0}, []uint32{0}) }, "items take"},
		{"a barrier that does not exist", func(p *pair) { p.Signal(0, 0); p.Streams[0][2] = 7 }, "barrier 7: the script has 1"},
		{"no halt", func(p *pair) { p.Streams[1] = append(p.Streams[1], 1) }, "processor 1, instruction 0 (signal)"},
		{"too long", func(p *pair) {
			p.Do(0, isa.Fill, 0, 0, []uint32{act, 1, 0}, make([][]uint32, 1100)...)
			for len(p.Streams[0]) < 1105 {
				p.Streams[0] = append(p.Streams[0], 0)
			}
			p.Streams[0][1] = 1105 | 1100<<16
		}, "at most 1024"},
		{"overlapping tensors", func(p *pair) { p.Tensor(isa.SegAct, 0, 39, 2) }, "overlaps or precedes"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t)
			c.build(p)
			err := Verify(p.Script(), p.plan)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("rejected: %v", err)
			case c.want != "" && err == nil:
				t.Errorf("accepted; want an error with %q", c.want)
			case c.want != "" && !strings.Contains(err.Error(), c.want):
				t.Errorf("error %q; want %q", err, c.want)
			}
		})
	}
}

// Any single damaged word must end in an error or a verdict, never in a panic, and the
// disassembler must print something.
func TestDamagedWordsNeverPanic(t *testing.T) {
	e := ownExample(t)
	p := newPair(t)
	p.chain(isa.Sync, []uint32{isa.ChainOp(isa.Tanh, 2, 0, 0, 0, false), isa.ChainOp(isa.Add, 1, 1, 2, 0, true)}, 24, 32, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	for range few(20000) {
		s, plan := e.Script, e.Plan
		if rng.IntN(4) == 0 {
			s, plan = p.Script(), p.plan
		}
		w, device := slices.Clone(s.Words), int(s.Words[isa.HeadDevice])
		for range 1 + rng.IntN(2) {
			at := rng.IntN(device)
			switch rng.IntN(3) {
			case 0:
				w[at] = rng.Uint32()
			case 1:
				w[at] ^= 1 << rng.IntN(32)
			case 2:
				w[at] += uint32(rng.IntN(5)) - 2
			}
		}
		damaged := &isa.Script{Words: w[:len(w)-rng.IntN(2)*rng.IntN(40)]}
		_ = Verify(damaged, plan)
		if isa.Disassemble(damaged) == "" {
			t.Fatal("a damaged script has no text")
		}
	}
}

// few is how often something random is tried: a tenth of it with -short.
func few(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}
