package persist

// Whose time it was: what each operation of the program, and each cell, took of what the clocks saw. An instruction has
// items of many nodes, so the time of a kind of instruction in a phase is divided by what their items cost.

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/clocks"
	"libvpps/persist/isa"
	"libvpps/persist/script"
)

// share is the time of some nodes, or of something else: nanoseconds of the processors' mean, by phase.
type share struct {
	name  string
	count uint64 // nodes or instances; 0: it has none
	spent [isa.Phases]float64
}

func (s *share) ns() (all float64) {
	for _, x := range s.spent {
		all += x
	}
	return all
}

// ledger is shares by name.
type ledger map[string]*share

func (l ledger) of(name string) *share {
	if l[name] == nil {
		l[name] = &share{name: name}
	}
	return l[name]
}

// add adds a number of nodes or instances, and their time.
func (s *share) add(count uint64, spent *[isa.Phases]float64) {
	s.count += count
	for p, ns := range spent {
		s.spent[p] += ns
	}
}

// sorted is those that took time, the largest first.
func (l ledger) sorted() []share {
	var list []share
	for _, s := range l {
		if s.ns() > 0 {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(x, y share) int { return cmp.Or(cmp.Compare(y.ns(), x.ns()), cmp.Compare(x.name, y.name)) })
	return list
}

// shares is the time of sum.Rows by operation and by cell. What is no node's has rows of its own in both.
func (e *Engine) shares(sum *clocks.Sum) (operations, cells []share) {
	if e.costs == nil {
		return nil, nil
	}
	owned := e.costs.Owned()
	spent, beside := divide(sum, owned)
	byOperation, byCell := maps.Clone(beside), maps.Clone(beside)
	for k := range owned {
		o := &owned[k]
		byOperation.of(o.Op.String()).add(o.Nodes, &spent[k])
		if o.Cell == nil {
			byCell.of("outside cells").add(o.Nodes, &spent[k])
		} else {
			byCell.of(cellName(o.Cell)).add(o.Instances, &spent[k])
		}
	}
	return byOperation.sorted(), byCell.sorted()
}

// divide gives each owner its part of the time of every kind of instruction. The rest is beside.
func divide(sum *clocks.Sum, owned []script.Owned) (spent [][isa.Phases]float64, beside ledger) {
	spent, beside = make([][isa.Phases]float64, len(owned)), ledger{}
	for p := range isa.Phases {
		for op := range isa.Opcode(isa.Opcodes) {
			ns, kind, total := sum.Cells[p][op].Mean, op, 0.0
			if kind == isa.Chain { // its items were a Map's
				kind = isa.Map
			}
			for k := range owned {
				total += owned[k].Costs[p][kind]
			}
			if total == 0 {
				beside.of(nobodys(p, op)).spent[p] += ns
				continue
			}
			for k := range owned {
				spent[k][p] += ns * owned[k].Costs[p][kind] / total
			}
		}
	}
	beside.of("between instructions").spent[isa.NoPhase] = sum.Parts[clocks.Fetch].Mean
	beside.of("idle").spent[isa.NoPhase] = sum.Parts[clocks.Idle].Mean
	return spent, beside
}

// nobodys names instructions that no node has items of.
func nobodys(p isa.Phase, op isa.Opcode) string {
	switch {
	case op == isa.Halt:
		return "load"
	case op == isa.Signal || op == isa.Wait:
		return "waiting"
	case p == isa.InUpdate:
		return "update"
	case p == isa.InGradients:
		return "gradients of parameters"
	}
	return "other"
}

// namedOperations is how many operations a cell's name has.
const namedOperations = 3

// cellName is the first operations of a cell, and what tells it from others: its size and the first parameter that it reads,
// by number, since the program's parameters may be gone.
func cellName(t *cells.Template) string {
	var names []string
	parameter := ""
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if name := n.Op.String(); n.Op != ops.Parameter && n.Op != ops.ConstParameter && !slices.Contains(names, name) {
			names = append(names, name)
		}
		for _, a := range n.Args {
			if parameter == "" && (a.Kind == cells.Param || a.Kind == cells.ConstParam) {
				parameter = fmt.Sprintf(", parameter %d", a.At)
			}
		}
	}
	if len(names) == 0 {
		names = []string{"parameters"}
	}
	if len(names) > namedOperations {
		names = append(names[:namedOperations], "…")
	}
	return fmt.Sprintf("%s (%d nodes%s)", strings.Join(names, "+"), len(t.Nodes), parameter)
}

// shareTable is shares as text. A row's last time is that of one node or instance on one of the processors.
func shareTable(list []share, counted, named string, processors int) string {
	total := 0.0
	for i := range list {
		total += list[i].ns()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%7s %12s %9s %9s %13s %11s  %s\n", "share", "seconds", "forward", "backward", counted, "us of each", named)
	for i := range list {
		s := &list[i]
		count, each := "", ""
		if s.count > 0 {
			count, each = fmt.Sprint(s.count), fmt.Sprintf("%.2f", s.ns()/1e3*float64(processors)/float64(s.count))
		}
		fmt.Fprintf(&b, "%6.1f%% %12.4f %8.1f%% %8.1f%% %13s %11s  %s\n", 100*s.ns()/total, s.ns()/1e9, 100*s.spent[isa.InForward]/total,
			100*(s.spent[isa.InBackward]+s.spent[isa.InGradients])/total, count, each, s.name)
	}
	return b.String()
}
