// Package schedule is the work of one script, level by level, before it has processors: items in clusters, products by
// matrices, and the signatures of their instructions. Lowering adds to it; persist/emit writes it. It knows of no graph.
//
// An item is one element of an instruction's list. Items of the same level, processor and order merge into one instruction
// when their signature (all words but the list) is the same. A level ends with a barrier among the processors that took part.
package schedule

import (
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Schedule is what is to be done, level by level. Its memory is reused.
type Schedule struct {
	Plan *plan.Plan
	arena

	Sigs     Signatures
	Clusters []Cluster
	Items    []Item
	Pool     []uint32 // words of items that are more than a few, and whole instructions
	Products []Product
	Outers   []Product // of Outer

	MaxLevel   int32
	OuterLevel int32             // of outer products, -1: they have none yet
	Ends       [isa.Phases]int32 // the last level of each phase

	Mixed bool            // vectors of one length may overlap without being the same
	Stays func(Item) bool // an item that is never a part of a chain; nil: none is

	Wide wideMemory
	grouping
	axes    []Axis   // of one node
	SumList []uint32 // the items of one Sum
	chain   chain
}

// Item is an item of a cluster.
type Item struct {
	Cluster int32
	Sub     int32
	Sig     uint32
	Words   [FewWords]uint32 // the first of them is where in Pool they are if they are more
}

// FewWords is how many words an item has itself.
const FewWords = 3

// AtTheEnd is the level of an outer product, OuterLevel, which is known at the end.
const AtTheEnd = -1

// Product is an item for every processor that holds a matrix.
type Product struct {
	Level int32
	Sig   uint32
	Words [2]uint32
}

// Clear forgets what was lowered.
func (s *Schedule) Clear() {
	s.Clusters = append(s.Clusters[:0], Cluster{}) // elsewhere
	s.Sigs.reset()
	for i := range s.chain.recent {
		s.chain.recent[i].key = s.chain.recent[i].key[:0]
	}
	s.Wide.cut.sig = 0
	s.Items, s.Pool, s.Products, s.Outers = s.Items[:0], s.Pool[:0], s.Products[:0], s.Outers[:0]
	s.Tensors = s.Tensors[:0]
	s.MaxLevel, s.OuterLevel = -1, -1
}

// Continue begins the schedule of a script that goes on where this one ends. What is left of it are signatures, clusters
// without work, after which those to come are placed, and tensors that there are now.
func (s *Schedule) Continue() {
	for i := range s.Clusters {
		s.Clusters[i].Cost, s.Clusters[i].Items = 0, 0
	}
	for i := 0; i < len(s.Tensors); i += isa.TensorWords {
		s.Tensors[i] |= isa.LiveIn << 8
	}
	s.Items, s.Pool, s.Products, s.Outers = s.Items[:0], s.Pool[:0], s.Products[:0], s.Outers[:0]
}

// PhaseOf is the phase that a level belongs to.
func (s *Schedule) PhaseOf(level int32) isa.Phase {
	p := isa.InForward
	for p < isa.InUpdate && level > s.Ends[p] {
		p++
	}
	return p
}

// Add adds an item to a cluster. The signature says how many of the words there are.
func (s *Schedule) Add(cluster, sub int32, sig, w0, w1, w2 uint32) {
	s.inCluster(cluster, sub, sig, w0, w1, w2, s.Sigs.Cost(sig))
}

func (s *Schedule) inCluster(cluster, sub int32, sig, w0, w1, w2 uint32, cost int32) {
	n := len(s.Items)
	if n == cap(s.Items) {
		s.Items = slices.Grow(s.Items, max(n, 1<<10))
	}
	s.Items = s.Items[:n+1]
	it := &s.Items[n] // field by field: a copy of a whole one takes longer
	it.Cluster, it.Sub, it.Sig = cluster, sub, sig
	it.Words[0], it.Words[1], it.Words[2] = w0, w1, w2
	c := &s.Clusters[s.Find(cluster)]
	c.Cost += cost
	c.Items++
}

// AddItem adds an item of any number of words to a cluster.
func (s *Schedule) AddItem(cluster, sub int32, sig uint32, words []uint32) {
	if len(words) > FewWords {
		at := uint32(len(s.Pool))
		s.Pool = append(s.Pool, words...)
		s.Add(cluster, sub, sig, at, 0, 0)
		return
	}
	var w [FewWords]uint32
	copy(w[:], words)
	s.Add(cluster, sub, sig, w[0], w[1], w[2])
}

// AddProduct adds an item for all processors that hold a matrix.
func (s *Schedule) AddProduct(level int32, sig uint32, first, second uint32) {
	s.Products = append(s.Products, Product{level, sig, [2]uint32{first, second}})
	s.MaxLevel = max(s.MaxLevel, level)
}

// Key is what items of one cluster are sorted by.
func (it *Item) Key() uint64 { return uint64(it.Sub)<<32 | uint64(it.Sig) }
