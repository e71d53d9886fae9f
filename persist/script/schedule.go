// Package schedule has what lowering hands to the writing of streams: items in clusters, products by matrices, and the
// signatures of their instructions, level by level. It knows of no graph.
//
// An item is one element of an instruction's list. Items of the same level, processor
// and order merge into one instruction when their signature (all words but the list) is the
// same. A level ends with a barrier among the processors that took part.
package script

import (
	"math"
	"slices"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// Schedule is what is to be done, level by level. Its memory is reused. Parts of a batch have schedules of their own until
// these are taken over.
type Schedule struct {
	Plan *plan.Plan
	arena

	sigs     sigTable
	clusters []cluster
	items    []item
	pool     []uint32     // words of items that are more than a few, and whole instructions
	matrices []matrixItem // products
	outers   []matrixItem // of Outer; their level, outerLevel, is known at the end

	maxLevel   int32
	outerLevel int32             // of outer products
	cut        int32             // the first level of the script's second part, or noCut
	ends       [isa.Phases]int32 // the last level of each phase
	library    []isa.LibraryGradient

	mixed bool            // vectors of one length may overlap without being the same
	stays func(item) bool // an item that is never a part of a chain; nil: none is

	wide wideMemory
	taking
	grouping
	axes    []axis   // of one node
	sumList []uint32 // the items of one Sum
	chain   chain
}

type item struct {
	cluster int32
	sub     int32
	sig     uint32
	words   [fewWords]uint32 // the first of them is where in pool they are if they are more
}

const fewWords = 3

// matrixItem is an item for every processor that holds a matrix.
type matrixItem struct {
	level int32
	sig   uint32
	words [2]uint32
}

// clear forgets what was lowered.
func (b *Schedule) clear() {
	b.clusters = append(b.clusters[:0], cluster{}) // elsewhere
	b.sigs.reset()
	b.wide.cut.sig = 0
	b.items, b.pool, b.matrices, b.outers = b.items[:0], b.pool[:0], b.matrices[:0], b.outers[:0]
	b.tensors = b.tensors[:0]
	b.parts, b.partEnds = b.parts[:0], b.partEnds[:0]
	b.library, b.maxLevel, b.cut = b.library[:0], -1, noCut
}

// phaseOf is the phase that a level belongs to.
func (b *Schedule) phaseOf(level int32) isa.Phase {
	p := isa.InForward
	for p < isa.InUpdate && level > b.ends[p] {
		p++
	}
	return p
}

// local adds an item to a cluster. The signature says how many of the words there are.
func (b *Schedule) local(cluster, sub int32, sig, w0, w1, w2 uint32) {
	b.inCluster(cluster, sub, sig, w0, w1, w2, b.sigs.cost(sig))
}

func (b *Schedule) inCluster(cluster, sub int32, sig, w0, w1, w2 uint32, cost int32) {
	n := len(b.items)
	if n == cap(b.items) {
		b.items = slices.Grow(b.items, max(n, 1<<10))
	}
	b.items = b.items[:n+1]
	it := &b.items[n] // field by field: a copy of a whole one takes longer
	it.cluster, it.sub, it.sig = cluster, sub, sig
	it.words[0], it.words[1], it.words[2] = w0, w1, w2
	c := &b.clusters[b.find(cluster)]
	c.cost += cost
	c.items++
}

// addItem adds an item of any number of words to a cluster.
func (b *Schedule) addItem(cluster, sub int32, sig uint32, words []uint32) {
	if len(words) > fewWords {
		at := uint32(len(b.pool))
		b.pool = append(b.pool, words...)
		b.local(cluster, sub, sig, at, 0, 0)
		return
	}
	var w [fewWords]uint32
	copy(w[:], words)
	b.local(cluster, sub, sig, w[0], w[1], w[2])
}

// onMatrix adds an item for all processors that hold a matrix.
func (b *Schedule) onMatrix(level int32, sig uint32, first, second uint32) {
	b.matrices = append(b.matrices, matrixItem{level, sig, [2]uint32{first, second}})
	b.maxLevel = max(b.maxLevel, level)
}

// noCut is the level of the cut of a script that is not cut.
const noCut = math.MaxInt32

// libraryOf is the library's product that outer products with a signature are a part of, nil: they are the kernel's.
func (b *Schedule) libraryOf(sig uint32) *isa.LibraryGradient {
	if len(b.library) == 0 {
		return nil
	}
	words := b.sigs.of(sig)
	return b.libraryInto(isa.Segment(words[2]&15), words[5])
}

func (b *Schedule) libraryInto(s isa.Segment, at uint32) *isa.LibraryGradient {
	for i := range b.library {
		if g := &b.library[i]; g.G == at && g.Segment == s {
			return g
		}
	}
	return nil
}
