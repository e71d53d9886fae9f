package persist

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"libvpps/bridge/ops"
	"libvpps/persist/isa"
	"libvpps/persist/script"
)

// Blame: what of a batch that is not finite was so first. Nothing is looked at while all goes well. A batch that failed has
// changed nothing, so its graph is evaluated again, with a look at each value, in memory behind that of all graphs.

// evidence is what a batch was made of. Its recording keeps the nodes until the batch's result is read.
type evidence struct {
	recording *recording // nil: nodes of it are gone
	inputs    []uint32
	node      uint32 // the loss, as the front-end counts
	graph     uint32
	forwards  uint32
	seed      uint32
}

// of the graph's next batch.
func (g *Graph) evidence(loss uint32) evidence {
	return evidence{g.recording, g.inputs(), loss, g.id, g.forwards - g.seeded, g.e.seed}
}

func finite(x float32) bool { return x-x == 0 }

// explain says what of a failed batch is not finite, and why it failed, if it can be found out.
func (e *Engine) explain(f *evidence, result [5]float32, t *Trainer) string {
	what := fmt.Sprintf("the norm of its gradients is not finite (loss %g)", result[0])
	if !finite(result[0]) {
		what = fmt.Sprintf("its loss is not finite (%g)", result[0])
	}
	if why := e.blame(f, t); why != "" {
		return what + ": " + why
	}
	return what + "; look for NaN or infinity in the loss"
}

// blame evaluates a failed batch again and names the first value that is not finite, or the first parameter whose
// gradient is not; "": none is, or it could not be found out.
func (e *Engine) blame(f *evidence, t *Trainer) string {
	if found := e.blamePending(t); found != "" {
		return found + ", as an earlier backward left it: " + resetAdvice
	}
	if f.recording == nil {
		return ""
	}
	defer f.recording.lend(f.inputs)()
	seed := e.seed
	defer func() { e.seed = seed }()
	e.seed = f.seed

	r := script.Request{Graph: f.recording.ir(), State: &script.State{}, Node: f.recording.at(f.node), Forward: true, Copy: true,
		Base: e.top(), Result: script.NoOffset, GraphID: f.graph, ForwardCount: f.forwards}
	built, err := e.run(&r)
	if err != nil || e.wait() != nil {
		return ""
	}
	r.State.Done = int(r.Node) + 1
	end := r.Base + built.Used
	if found := e.blameNode(f.recording, r.State, f.node, end); found != "" {
		return found
	}
	r.Forward, r.Backward, r.Base = false, true, (end+63)&^63
	return e.blameGradient(&r, t)
}

// blameNode names the first node that a loss depends on whose value is not finite.
func (e *Engine) blameNode(r *recording, s *script.State, loss, end uint32) string {
	look := looker{e: e, end: end}
	needed := make([]bool, loss+1)
	needed[loss] = true
	for v := loss; v > 0; v-- {
		if needed[v] {
			for _, a := range r.wire.ArgsOf(v) {
				needed[a] = true
			}
		}
	}
	value := func(v uint32) extent {
		n := r.at(v)
		return look.at(s.Segment[n], s.Value[n], uint32(r.wire.DimOf(v).Size()))
	}
	for v := range loss + 1 {
		if !needed[v] {
			continue
		}
		x := value(v)
		if look.err != nil {
			return ""
		}
		if !x.finite() {
			return "the first value that is not finite is that of " + e.nodeName(r, v, x.first) + ", " + x.String() + argumentsOf(e, r, v, value)
		}
	}
	return ""
}

// argumentsOf describes the values of a node's arguments, of the first few.
func argumentsOf(e *Engine, r *recording, v uint32, value func(uint32) extent) string {
	const few = 4
	var b strings.Builder
	args := r.wire.ArgsOf(v)
	for i, a := range args {
		if i == few {
			fmt.Fprintf(&b, " and %d more", len(args)-few)
			break
		}
		b.WriteString([]string{", of ", " and "}[min(i, 1)])
		fmt.Fprintf(&b, "%s, %v", e.nodeName(r, a, 0), value(a))
	}
	return b.String()
}

// nodeName is a node's number, operation, parameter and dim; of a lookup, the row that an element belongs to.
func (e *Engine) nodeName(r *recording, v, element uint32) string {
	g := &r.wire
	name := fmt.Sprintf("node %d (%s", v, g.Op[v])
	switch op, attrs := g.Op[v], g.AttrsOf(v); op {
	case ops.Parameter, ops.ConstParameter:
		name += fmt.Sprintf(" %q", e.params[attrs[0]].name)
	case ops.Lookup, ops.ConstLookup:
		p := &e.params[attrs[0]]
		name += fmt.Sprintf(" %q, row %d", p.name, g.Inputs[attrs[1]+element/max(p.Row, 1)])
	}
	return fmt.Sprintf("%s) %v", name, *g.DimOf(v))
}

// blameGradient runs the backward part of an evaluated graph and names the first of a trainer's parameters whose gradient
// is not finite. Pending gradients, which that adds to, are as before afterwards.
func (e *Engine) blameGradient(r *script.Request, t *Trainer) string {
	var pending []paramBefore
	for id := range e.params {
		if p := &e.params[id]; p.pends() {
			all, err := e.pendingGradient(p)
			if err != nil {
				return ""
			}
			pending = append(pending, paramBefore{uint32(id), p.Pending, p.fused, p.Rows, p.version, all})
		}
	}
	built, err := e.run(r)
	if err != nil || e.wait() != nil {
		return ""
	}
	found := ""
	for _, id := range t.ids {
		p := e.params[id] // a copy
		p.Pending = p.Pending || slices.Contains(built.Formed, id)
		for _, x := range built.Touched {
			if x.Param == id {
				p.Rows = append(slices.Clone(p.Rows), x.Row)
			}
		}
		if found = e.blameParameter(&p, p.pending()); found != "" {
			found = "all values are finite, but not " + found
			break
		}
	}
	for i := range pending {
		if e.bringBack(&e.params[pending[i].id], &pending[i]) != nil {
			return ""
		}
	}
	return found
}

// resetAdvice is how a gradient that is not finite is got rid of.
const resetAdvice = "set gradients to zero by model.reset_gradient() (in C: vpps_parameter_scale(engine, id, VPPS_GRADIENT, 0))"

// blamePending names the first of a trainer's parameters whose pending gradient is not finite.
func (e *Engine) blamePending(t *Trainer) string {
	for _, id := range t.ids {
		p := &e.params[id]
		if found := e.blameParameter(p, p.pending()); found != "" {
			return found + " is not finite"
		}
	}
	return ""
}

// blameParameter names a parameter if a part of its gradient is not finite.
func (e *Engine) blameParameter(p *parameter, part pendingRows) string {
	look := looker{e: e}
	for offset, n := range part.spans(p) {
		x := look.at(p.segment(Gradient), p.Offset+offset, n)
		if look.err != nil {
			return ""
		}
		if x.finite() {
			continue
		}
		found := fmt.Sprintf("the gradient of parameter %q", p.name)
		if p.Lookup {
			found += fmt.Sprintf(", row %d", (offset+x.first)/p.Row)
		}
		return found
	}
	return ""
}

// extent is what there is among some values.
type extent struct {
	least, most float32 // of those that are numbers
	nan         uint32  // how many are not
	first       uint32  // which one is not finite first; only if one is not
	n           uint32
}

func (x extent) finite() bool { return x.nan == 0 && finite(x.least) && finite(x.most) }

func (x extent) String() string {
	switch {
	case x.nan == 0 && x.least == x.most:
		return fmt.Sprintf("which is %g", x.least)
	case x.nan == 0:
		return fmt.Sprintf("from %g to %g", x.least, x.most)
	case x.nan == x.n:
		return "which is NaN"
	}
	return fmt.Sprintf("from %g to %g and %d of %d NaN", x.least, x.most, x.nan, x.n)
}

// looker reads values in the order of their places; of segment act many at a time.
type looker struct {
	e       *Engine
	end     uint32 // of segment act: nothing lies beyond
	segment isa.Segment
	from    uint32 // where buffer is from
	buffer  []float32
	err     error
}

// at is what n values at a place are.
func (k *looker) at(s isa.Segment, at, n uint32) extent {
	const most = 1 << 16
	x := extent{least: float32(math.Inf(1)), most: float32(math.Inf(-1)), n: n}
	good := true
	for i := uint32(0); i < n && k.err == nil; {
		if s != k.segment || at+i < k.from || at+i >= k.from+uint32(len(k.buffer)) {
			k.segment, k.from = s, at+i
			end := at + n
			if s == isa.SegAct {
				end = k.end
			}
			k.buffer = slices.Grow(k.buffer[:0], most)[:min(most, end-k.from)]
			if k.err = k.e.exec.Read(s, uint64(k.from), k.buffer); k.err != nil {
				break
			}
		}
		for _, v := range k.buffer[at+i-k.from:][:min(n-i, k.from+uint32(len(k.buffer))-at-i)] {
			if good = good && finite(v); good {
				x.first++
			}
			if v != v {
				x.nan++
			} else {
				x.least, x.most = min(x.least, v), max(x.most, v)
			}
			i++
		}
	}
	return x
}

// lend has the recording's nodes read the inputs of a batch, until the function is called that it returns.
func (r *recording) lend(inputs []uint32) (back func()) {
	mine := r.wire.Inputs
	r.read(inputs)
	return func() { r.read(mine) }
}

// read has the nodes read input words.
func (r *recording) read(inputs []uint32) {
	r.wire.Inputs = inputs
	if r.expanded != nil {
		r.expanded.Inputs = inputs
	}
}
