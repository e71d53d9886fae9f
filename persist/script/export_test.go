package script

import (
	"testing"

	"libvpps/bridge/cells"
)

// These are for the tests of package script_test.
var (
	Scheduled   = scheduled
	Sentences   = sentences
	Requested   = requested
	Minibatches = minibatches
	Recurrent   = recurrent
	LongSums    = longSums
)

// PartNodes sets how many nodes a part has at least, and returns how many it was.
func PartNodes(n int) int {
	was := partNodes
	partNodes = n
	return was
}

// FormingNodes sets up to how many nodes of a graph products form their vectors, and returns how many it was.
func FormingNodes(n int) int {
	was := formingNodes
	formingNodes = n
	return was
}

// racing is whether the race detector watches, with which some tests take 25 times as long.
var racing bool

// Few is how often something random is tried: a tenth of it with -short.
func Few(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// Fewer is Few, and a quarter of that with the race detector.
func Fewer(n int) int {
	if racing {
		return Few(n) / 4
	}
	return Few(n)
}

// Merged is how many nodes of the last graph were evaluated with equal ones.
func Merged(b *Builder) (nodes int) {
	for i, x := range b.r.Cells.Instances {
		if b.cells.list[i].same != uint32(i) {
			nodes += len(x.Template.Nodes)
		}
	}
	return nodes
}

// Shared is how many kinds of items the pieces of batched clusters of the latest script share.
func Shared(b *Builder) int { return max(0, len(b.wide.wholes)-1) }

// ByInstances reports whether the latest script was made of instances.
func ByInstances(b *Builder) bool { return b.schedulable() }

// InputWords is how many input words a template's node reads.
func InputWords(n *cells.Node) uint32 {
	_, count := inputWords(n)
	return count
}
