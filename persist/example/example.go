// A hand-written script, as data: two processors run two layers forward and
// backward. Each forms a slice of every vector. A barrier stands where one needs what the
// other has formed. The verifier and both executors are tested with it.
package example

import (
	"math"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Example is a script with the memory it starts from and the results it must leave.
type Example struct {
	Script   *isa.Script
	Plan     *plan.Plan
	Memory   [isa.Segments][]float32 // what each segment holds before the launch; input is in the script
	Expected []Expectation
}

// Expectation is a run of results, computed in float64.
type Expectation struct {
	Name    string
	Segment isa.Segment
	Offset  int
	Values  []float64
}

// Sizes of the example's layers; odd, so that slices differ.
const ownIn, ownHidden, ownOut = 5, 7, 3

// Where its tensors lie: parameters and their gradients, then activations.
const (
	ownW = 0
	ownB = ownW + ownHidden*ownIn
	ownV = ownB + ownHidden
	ownP = ownV + ownOut*ownHidden

	ownX   = 0                   // the input
	ownY   = ownX + ownIn        // W x + b
	ownH   = ownY + ownHidden    // tanh y
	ownZ   = ownH + ownHidden    // V h
	ownO   = ownZ + ownOut       // tanh z; the loss is its sum
	ownDO  = ownO + ownOut       // 1
	ownDZ  = ownDO + ownOut      // d loss/d z
	ownTH  = ownDZ + ownOut      // one partial V' dz per processor
	ownDH  = ownTH + 2*ownHidden // their sum
	ownDY  = ownDH + ownHidden   // d loss/d y
	ownTX  = ownDY + ownHidden   // one partial W' dy per processor
	ownDX  = ownTX + 2*ownIn     // their sum
	ownAct = ownDX + ownIn
)

// OwnExample makes the example: o = tanh(V tanh(W x + b)), loss = sum of o.
func OwnExample() (*Example, error) {
	p, err := plan.Sliced([]plan.Matrix{
		{Param: 0, Name: "W", Rows: ownHidden, Cols: ownIn, Offset: ownW},
		{Param: 2, Name: "V", Rows: ownOut, Cols: ownHidden, Offset: ownV},
	}, 2)
	if err != nil {
		return nil, err
	}
	a := isa.NewAssembler(2)
	x := make([]float32, ownIn)
	for i := range x {
		x[i] = float32(i)/4 - 0.5
		a.Inputs = append(a.Inputs, isa.Float(x[i]))
	}
	ownTensors(a)
	for processor := range 2 {
		ownForward(a, processor)
		ownBackward(a, processor)
	}
	e := &Example{Script: a.Script(), Plan: p}
	e.Memory[isa.SegParam] = make([]float32, ownP)
	for i := range e.Memory[isa.SegParam] {
		e.Memory[isa.SegParam][i] = float32(i*7%11)/16 - 0.3
	}
	e.Memory[isa.SegGrad] = make([]float32, ownP)
	e.Memory[isa.SegAct] = make([]float32, ownAct)
	for i := range e.Memory[isa.SegAct] {
		e.Memory[isa.SegAct][i] = math.Float32frombits(isa.Sentinel)
	}
	e.expect(x)
	return e, nil
}

func ownTensors(a *isa.Assembler) {
	for _, t := range [][2]uint32{{ownW, ownB}, {ownB, ownV}, {ownV, ownP}} {
		a.Tensor(isa.SegParam, isa.LiveIn, t[0], t[1]-t[0])
		a.Tensor(isa.SegGrad, isa.LiveIn, t[0], t[1]-t[0])
	}
	for _, t := range [][2]uint32{{ownX, ownY}, {ownY, ownH}, {ownH, ownZ}, {ownZ, ownO}, {ownO, ownDO}, {ownDO, ownDZ},
		{ownDZ, ownTH}, {ownTH, ownDH}, {ownDH, ownDY}, {ownDY, ownTX}, {ownTX, ownDX}, {ownDX, ownAct}} {
		a.Tensor(isa.SegAct, 0, t[0], t[1]-t[0])
	}
	a.Tensor(isa.SegInput, isa.LiveIn, 0, ownIn)
}

// handOver lets processor p go on when both have come to a barrier.
func handOver(a *isa.Assembler, p int, barrier uint32) {
	a.Signal(p, barrier)
	a.Wait(p, barrier, 2)
}

// slice is the first element of a vector of n that processor p forms, and how many it does.
func slice(n, p int) (first, length uint32) {
	lo, hi := plan.Slice(n, p, 2)
	return uint32(lo), uint32(hi - lo)
}

func ownForward(a *isa.Assembler, p int) {
	one := isa.Float(1)
	act2 := isa.Segs(isa.SegAct, isa.SegAct)
	in, ins := slice(ownIn, p)
	hidden, hiddens := slice(ownHidden, p)
	out, outs := slice(ownOut, p)
	a.Do(p, isa.Map, uint8(isa.Copy), 0, []uint32{isa.Segs(isa.SegAct, isa.SegInput), ins, 0, 0}, []uint32{ownX + in, in})
	handOver(a, p, 0)
	a.DoListed(p, isa.Product, isa.Bias, []uint32{isa.Segs(isa.SegAct, isa.SegAct, isa.SegParam), 0, one, ownB, one}, []uint32{ownY, ownX})
	a.Do(p, isa.Map, uint8(isa.Tanh), isa.Sync, []uint32{act2, hiddens, 0, 0}, []uint32{ownH + hidden, ownY + hidden})
	handOver(a, p, 1)
	a.Do(p, isa.Product, 0, 0, []uint32{act2, 1, one, 0, 0}, []uint32{ownZ, ownH})
	a.Do(p, isa.Map, uint8(isa.Tanh), isa.Sync, []uint32{act2, outs, 0, 0}, []uint32{ownO + out, ownZ + out})
}

func ownBackward(a *isa.Assembler, p int) {
	one := isa.Float(1)
	act, act2, act3 := isa.Segs(isa.SegAct), isa.Segs(isa.SegAct, isa.SegAct), isa.Segs(isa.SegAct, isa.SegAct, isa.SegAct)
	in, ins := slice(ownIn, p)
	hidden, hiddens := slice(ownHidden, p)
	out, outs := slice(ownOut, p)
	a.Do(p, isa.Fill, 0, 0, []uint32{act, outs, one}, []uint32{ownDO + out})
	a.Do(p, isa.Map, uint8(isa.TanhB), isa.Sync, []uint32{act3, outs, 0, 0}, []uint32{ownDZ + out, ownDO + out, ownO + out})
	a.DoListed(p, isa.ProductT, isa.Sync, []uint32{act2, 1, one, ownHidden}, []uint32{ownTH, ownDZ})
	a.Signal(p, 2)
	a.Wait(p, 2, 2)
	a.Do(p, isa.Sum, 0, 0, []uint32{act2, hiddens, one, ownDH + hidden, 1 | 2<<16, ownHidden, 0}, []uint32{ownTH + hidden})
	a.Do(p, isa.Map, uint8(isa.TanhB), isa.Sync, []uint32{act3, hiddens, 0, 0}, []uint32{ownDY + hidden, ownDH + hidden, ownH + hidden})
	a.Do(p, isa.ProductT, 0, isa.Sync, []uint32{act2, 0, one, ownIn}, []uint32{ownTX, ownDY})
	a.Signal(p, 3)
	a.DoListed(p, isa.Outer, isa.Acc, []uint32{isa.Segs(isa.SegGrad, isa.SegAct, isa.SegAct), 1, one, ownV}, []uint32{ownDZ, ownH})
	a.Do(p, isa.Outer, 0, isa.Acc, []uint32{isa.Segs(isa.SegGrad, isa.SegAct, isa.SegAct), 0, one, ownW}, []uint32{ownDY, ownX})
	a.Do(p, isa.Map, uint8(isa.Copy), isa.Acc, []uint32{isa.Segs(isa.SegGrad, isa.SegAct), hiddens, 0, 0}, []uint32{ownB + hidden, ownDY + hidden})
	a.Wait(p, 3, 2)
	a.Do(p, isa.Sum, 0, 0, []uint32{act2, ins, one, ownDX + in, 0, 0, 0}, []uint32{ownTX + in}, []uint32{ownTX + ownIn + in})
}

// expect computes the results in float64.
func (e *Example) expect(x []float32) {
	param := func(i int) float64 { return float64(e.Memory[isa.SegParam][i]) }
	h, o := make([]float64, ownHidden), make([]float64, ownOut)
	for r := range h {
		y := param(ownB + r)
		for c := range x {
			y += param(ownW+r+c*ownHidden) * float64(x[c])
		}
		h[r] = math.Tanh(y)
	}
	dz, dy, dx := make([]float64, ownOut), make([]float64, ownHidden), make([]float64, ownIn)
	gv, gw := make([]float64, ownOut*ownHidden), make([]float64, ownHidden*ownIn)
	for r := range o {
		z := 0.0
		for c := range h {
			z += param(ownV+r+c*ownOut) * h[c]
		}
		o[r] = math.Tanh(z)
		dz[r] = 1 - o[r]*o[r]
		for c := range h {
			gv[r+c*ownOut] = dz[r] * h[c]
			dy[c] += param(ownV+r+c*ownOut) * dz[r]
		}
	}
	for r := range dy {
		dy[r] *= 1 - h[r]*h[r]
		for c := range x {
			gw[r+c*ownHidden] = dy[r] * float64(x[c])
			dx[c] += param(ownW+r+c*ownHidden) * dy[r]
		}
	}
	e.Expected = []Expectation{
		{"h", isa.SegAct, ownH, h}, {"o", isa.SegAct, ownO, o}, {"dy", isa.SegAct, ownDY, dy}, {"dx", isa.SegAct, ownDX, dx},
		{"dW", isa.SegGrad, ownW, gw}, {"db", isa.SegGrad, ownB, dy}, {"dV", isa.SegGrad, ownV, gv},
	}
}
