package script

import (
	"testing"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/bridge/ops"
	"libvpps/persist/finish"
	"libvpps/persist/isa"
	"libvpps/persist/schedule"
)

// These are for the tests of package script_test.
var (
	Scheduled     = scheduled
	Sentences     = sentences
	LanguageModel = languageModel
	TimesColumns  = timesColumns
	LargeInputs   = largeInputs
	Requested     = requested
	RequestedWith = requestedWith
	Minibatches   = minibatches
	Recurrent     = recurrent
	LongSums      = longSums
	TwoHeads      = twoHeads
)

// LargeOperations are requests of steps with one operation each, whose work is divided. The loss is of all its value.
func LargeOperations(t testing.TB) map[string]*Request {
	none, one, few, tall := bridge.Dim{}, dimOf(1, 1), dimOf(2, 200, 200), dimOf(1, 20000, 2)
	list := map[string]*Request{}
	for name, o := range map[string]large{
		"a sum":                     {ops.SumElements, nil, dimOf(1, 64, 1024), none, one, true},
		"a sum of each":             {ops.SumElements, nil, dimOf(2, 70000), none, dimOf(2, 1), true},
		"a norm":                    {ops.L2Norm, nil, dimOf(1, 64, 1024), none, one, true},
		"sums of two columns":       {ops.SumDimension, []uint32{1, 0}, tall, none, dimOf(1, 2), true},
		"a sum over the batch":      {ops.SumDimension, []uint32{0, 1}, dimOf(4096, 4, 2), none, dimOf(1, 4, 2), true},
		"a mean of squares":         {ops.MomentDimension, []uint32{3, 2, 1, 0}, few, none, one, true},
		"a distance":                {ops.SquaredEuclideanDistance, nil, dimOf(1, 64, 1024), dimOf(1, 64, 1024), one, true},
		"plus a row of two":         {ops.CwiseSum, nil, tall, dimOf(1, 1, 2), tall, true},
		"times a number of each":    {ops.CwiseMultiply, nil, few, dimOf(2, 1), few, true},
		"an error of many classes":  {ops.PickNegLogSoftmax, []uint32{1}, dimOf(1, 30000), none, one, true},
		"errors of many classes":    {ops.PickNegLogSoftmax, []uint32{0}, dimOf(3, 40000), none, dimOf(3, 1), true},
		"a softmax of rows, few":    {ops.Softmax, []uint32{1}, few, none, few, true},
		"the three largest, few":    {ops.KMaxPooling, []uint32{3, 1}, few, none, dimOf(2, 200, 3), true},
		"the three largest, batch":  {ops.KMaxPooling, []uint32{3, 1}, dimOf(40, 20, 20), none, dimOf(40, 20, 3), true},
		"the largest of each":       {ops.Argmax, []uint32{isa.Float(1)}, dimOf(40, 500), none, dimOf(40, 500), true},
		"sums along rows, few":      {ops.CumulativeSum, []uint32{1}, few, none, few, true},
		"sums along a long line":    {ops.CumulativeSum, []uint32{0}, dimOf(1, 5000), none, dimOf(1, 5000), true},
		"a transposition":           {ops.Transpose, []uint32{0x01}, tall, none, dimOf(1, 2, 20000), true},
		"every second of a batch":   {ops.StridedSelect, []uint32{0, 20, 2, 0, 20, 1, 0, 1, 1, 0, 1, 1, 1, 40, 3}, dimOf(40, 20, 20), none, dimOf(13, 10, 20), true},
		"64 columns":                {ops.SelectCols, []uint32{distinct, 64}, dimOf(1, 32, 1024), none, dimOf(1, 32, 64), true},
		"two columns, often":        {ops.SelectCols, []uint32{0, 64}, dimOf(1, 32, 1024), none, dimOf(1, 32, 64), true},
		"batch elements twice each": {ops.PickBatchElements, []uint32{0, 4}, few, none, dimOf(4, 200, 200), true},
		"errors of a batch":         {ops.PickNegLogSoftmax, []uint32{distinct}, dimOf(300, 1024), none, dimOf(300, 1), true},
		"a hinge loss of many":      {ops.Hinge, []uint32{isa.Float(1), 1}, dimOf(1, 30000), none, one, true},
		"hinge losses of a batch":   {ops.Hinge, []uint32{isa.Float(1), distinct}, dimOf(300, 1024), none, dimOf(300, 1), true},
		"hinge losses of columns":   {ops.HingeDim, []uint32{isa.Float(1), 0, distinct, 64}, dimOf(1, 1024, 64), none, dimOf(1, 64), true},
		"an element of each of 300": {ops.PickElement, []uint32{0, distinct, 300}, dimOf(300, 1024), none, dimOf(300, 1), true},
		"all of it, picked":         {ops.PickElement, []uint32{1, 0, 1}, dimOf(1, 20000, 1), none, dimOf(1, 20000, 1), true},
		"a row times two columns":   {ops.MatrixMultiply, nil, dimOf(1, 1, 20000), tall, dimOf(1, 1, 2), true},
		"two columns times two":     {ops.MatrixMultiply, nil, tall, dimOf(1, 2, 2), tall, true},
		"9 rows times 40 columns":   {ops.MatrixMultiply, nil, dimOf(1, 9, 3000), dimOf(1, 3000, 40), dimOf(1, 9, 40), true},
		"windows times 10 filters":  {ops.MatrixMultiply, nil, dimOf(1, 9000, 12), dimOf(1, 12, 10), dimOf(1, 9000, 10), true},
		"windows of each":           {ops.MatrixMultiply, nil, dimOf(40, 9, 64), dimOf(1, 64, 40), dimOf(40, 9, 40), true},
		"small products":            {ops.MatrixMultiply, nil, dimOf(600, 3, 4), dimOf(600, 4, 2), dimOf(600, 3, 2), true},
		"products with one":         {ops.MatrixMultiply, nil, dimOf(600, 3, 4), dimOf(1, 4, 2), dimOf(600, 3, 2), true},
		"an element of each":        {ops.PickElement, []uint32{0, 0, 40}, dimOf(40, 500), none, dimOf(40, 1), true},
	} {
		r := trainedBy(t, o)
		r.Update = &finish.Apply{Rule: isa.SGD, Params: []uint32{0}, State: []uint32{0}, All: []uint32{0}}
		if len(r.Params) > 1 {
			r.Update.Params, r.Update.State, r.Update.All = []uint32{0, 1}, []uint32{0, 0}, []uint32{0, 1}
		}
		list[name] = r
	}
	return list
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
func Shared(b *Builder) int { return max(0, len(b.Wide.Wholes)-1) }

// DividedByColumns is how many clusters of the latest script are divided by columns.
func DividedByColumns(b *Builder) (n int) {
	for i := range b.Clusters {
		if b.Clusters[i].Kind&schedule.ByColumns != 0 && b.Clusters[i].Parent == int32(i) {
			n++
		}
	}
	return n
}

// ColumnsApart is columnsApart of a node of the latest request.
func ColumnsApart(b *Builder, v uint32) uint32 { return b.columnsApart(v) }

// ByInstances reports whether the latest script was made of instances.
func ByInstances(b *Builder) bool { return b.schedulable() }

// InputWords is how many input words a template's node reads.
func InputWords(n *cells.Node) uint32 {
	_, count := cells.InputWords(n.Op, &n.Dim, n.Attrs)
	return count
}

// Unfit reports whether lowering the latest graph by instances was tried in vain.
func Unfit(b *Builder) bool { return b.schedulable() && !b.out.ByInstances }

// InWideCells reports whether the latest script was made of instances in a graph with wide nodes.
func InWideCells(b *Builder) bool { return b.out.ByInstances && b.Wide.On }

// ClusterCosts is what all clusters of the latest script cost, and the costliest.
func ClusterCosts(b *Builder) (all, most int32) {
	for _, c := range b.emitter.ByLevel {
		cost := b.Clusters[c].Cost
		all, most = all+cost, max(most, cost)
	}
	return all, most
}

// CostlyLevels is how many backward levels of the latest script have a cluster that costs so much.
func CostlyLevels(b *Builder, cost int32) int {
	levels := map[int32]bool{}
	for _, c := range b.emitter.ByLevel {
		if x := &b.Clusters[c]; x.Cost >= cost && b.PhaseOf(x.Level) == isa.InBackward {
			levels[x.Level] = true
		}
	}
	return len(levels)
}
