package script

import (
	"cmp"
	"slices"

	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// The tensor table that ends a script: what the verifier holds every address against.

type tensor struct {
	seg   isa.Segment
	flags uint32
	at, n uint32
}

// tensorTable is the table: this build's activations, what earlier calls left, the
// parameters, the inputs and the result words.
func (b *Builder) tensorTable() (w []uint32) {
	var t []tensor
	for i := 0; i < len(b.Tensors); i += isa.TensorWords {
		t = append(t, tensor{isa.Segment(b.Tensors[i] & 0xff), b.Tensors[i] >> 8, b.Tensors[i+1], b.Tensors[i+2]})
	}
	for _, p := range b.r.Params {
		if p.Size == 0 {
			continue
		}
		val, grad := isa.SegParam, isa.SegGrad
		if p.Lookup {
			val, grad = isa.SegTable, isa.SegTGrad
		}
		t = append(t, tensor{val, isa.LiveIn, p.Offset, p.Size})
		if p.Lookup && !p.Pending {
			t = append(t, rowTensors(&p, grad)...)
			continue
		}
		live := uint32(0)
		if p.Pending {
			live = isa.LiveIn
		}
		t = append(t, tensor{grad, live, p.Offset, p.Size})
	}
	if a := b.r.Update; a != nil {
		for i, id := range a.Params {
			if n := b.r.Params[id].Size * uint32(isa.RuleTable[a.Rule].States); n > 0 {
				t = append(t, tensor{isa.SegState, isa.LiveIn, a.State[i], n})
			}
		}
	}
	if b.g != nil {
		t = b.earlier(t)
		if n := len(b.g.Inputs); n > 0 && b.readsInputs() {
			t = append(t, tensor{isa.SegInput, isa.LiveIn, 0, uint32(n)})
		}
	}
	if n := b.r.answerFloats(); n > 0 {
		t = append(t, tensor{isa.SegResult, 0, b.r.Result, n})
	} else if b.r.Result != NoOffset {
		t = append(t, tensor{isa.SegResult, 0, b.r.Result, 5})
	}
	slices.SortFunc(t, func(x, y tensor) int {
		return cmp.Or(cmp.Compare(x.seg, y.seg), cmp.Compare(x.at, y.at), cmp.Compare(y.n, x.n))
	})
	end, seg := uint64(0), isa.Segments
	for _, x := range t {
		if x.seg == seg && uint64(x.at) < end { // an alias of the one before
			continue
		}
		w = append(w, uint32(x.seg)|x.flags<<8, x.at, x.n)
		end, seg = uint64(x.at)+uint64(x.n), x.seg
	}
	return w
}

// rowTensors splits a table's gradient into rows that are pending and runs that are not.
func rowTensors(p *schedule.Param, grad isa.Segment) (t []tensor) {
	next := uint32(0)
	for _, r := range append(slices.Clone(p.Rows), p.Size/p.Row) {
		if r > next {
			t = append(t, tensor{grad, 0, p.Offset + next*p.Row, (r - next) * p.Row})
		}
		if r < p.Size/p.Row {
			t = append(t, tensor{grad, isa.LiveIn, p.Offset + r*p.Row, p.Row})
		}
		next = r + 1
	}
	return t
}

// earlier adds what nodes evaluated by earlier calls left in act.
func (b *Builder) earlier(t []tensor) []tensor {
	for v := range uint32(b.s.Done) { // what a graph that is evaluated anew has of later nodes is out of date
		at := b.s.Value[v]
		if at == NoOffset || at >= b.r.Base || b.s.Segment[v] != isa.SegAct {
			continue
		}
		t = append(t, tensor{isa.SegAct, isa.LiveIn, at, uint32(b.size(v))})
		if b.s.Aux[v] != NoOffset && b.g.Op[v] == ops.PickNegLogSoftmax {
			t = append(t, tensor{isa.SegAct, isa.LiveIn, b.s.Aux[v], b.g.DimOf(v).Bd})
		}
		if b.s.Aux[v] != NoOffset && b.g.Op[v] == ops.LogDet {
			t = append(t, tensor{isa.SegAct, isa.LiveIn, b.s.Aux[v], uint32(b.size(b.g.ArgsOf(v)[0]))})
		}
	}
	return t
}
