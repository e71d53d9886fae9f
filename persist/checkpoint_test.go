package persist

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/bridge"
	"libvpps/bridge/ops"
	"libvpps/persist/isa"
)

// run is a model that trains: a vector, a table, dropout and weight decay, by some rule.
type run struct {
	*model
	contents Contents
	losses   []float32
}

func newRun(t *testing.T, rule isa.Rule) *run {
	t.Helper()
	m := newModel(t, 0.05)
	return m.run(rule, paramTable, paramW)
}

func (m *model) run(rule isa.Rule, ids ...uint32) *run {
	m.Helper()
	trainer, err := m.NewTrainer(TrainerOptions{Rule: rule, LearningRate: 0.05, Clipping: true, Threshold: 5, Sparse: true,
		Momentum: 0.9, Rho: 0.95, Epsilon: 1e-3, Beta1: 0.9, Beta2: 0.999}, ids)
	require.NoError(m, err)
	h, err := m.NewHandle(ids, trainer)
	require.NoError(m, err)
	return &run{m, Contents{IDs: []uint32{paramW, paramTable}, Trainers: []*Trainer{trainer}, Handles: []*Handle{h}}, nil}
}

// dropped records loss = sum(square(dropout(w + table[row]))): nodes 0 to 5.
func dropped(row uint32) *bridge.Words {
	return words(true, []uint32{row}, op(ops.Parameter, dim2, paramW), op(ops.Lookup, dim2, paramTable, 0), op(ops.Sum, dim2, 2, 0, 1),
		op(ops.Dropout, dim2, 2, bits(0.5)[0]), op(ops.Square, dim2, 3), op(ops.SumElements, dim1, 4))
}

// train trains some batches on from number first.
func (r *run) train(first, count int) {
	r.Helper()
	for k := range count {
		g := r.NewGraph()
		loss, err := r.contents.Handles[0].FB(g, dropped(uint32((first+k)*7%4)), 5)
		require.NoError(r, err)
		r.losses = append(r.losses, loss)
		g.Close()
	}
}

// accumulate leaves a gradient that no update has applied, of loss = sum(square(w + table[3])). Dropout might make it 0.
func (r *run) accumulate() {
	r.Helper()
	g := r.NewGraph()
	defer g.Close()
	require.NoError(r, g.Backward(words(true, []uint32{3}, op(ops.Parameter, dim2, paramW), op(ops.Lookup, dim2, paramTable, 0),
		op(ops.Sum, dim2, 2, 0, 1), op(ops.Square, dim2, 2), op(ops.SumElements, dim1, 3)), 4, false))
}

func (r *run) save(file string) {
	r.Helper()
	require.NoError(r, r.SaveCheckpoint(file, &r.contents))
}

func (r *run) load(file string) error {
	c, err := OpenCheckpoint(file)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Load(r.Engine, &r.contents)
}

func (r *run) state() string {
	r.Helper()
	return stateOf(r, r.Engine, &r.contents)
}

// stateOf is all that a checkpoint holds, as one text; two that are equal go on alike.
func stateOf(t testing.TB, e *Engine, c *Contents) string {
	t.Helper()
	_, err := e.Factor(0) // waits
	require.NoError(t, err)
	collections, err := e.checkContents(c)
	require.NoError(t, err)
	var text bytes.Buffer
	w := newSectionWriter(&text)
	e.writeSections(w, c, collections)
	_, err = w.header()
	require.NoError(t, err)
	return text.String()
}

// After a batch has failed, a checkpoint holds the losses of the batches since, and no other.
func TestACheckpointHoldsNoLossFromBeforeAFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	r, resumed := newRun(t, isa.SGD), newRun(t, isa.SGD)
	r.train(0, 9)
	g := r.NewGraph()
	defer g.Close()
	_, err := r.contents.Handles[0].FB(g, words(true, nil, op(ops.Constant, dim1, bits(-1)[0]), op(ops.Log, dim1, 0)), 1)
	if err == nil {
		_, err = r.contents.Handles[0].SyncLatestLoss()
	}
	require.ErrorContains(t, err, "not finite")
	r.save(file)
	require.NoError(t, resumed.load(file))
	r.train(9, 1)
	resumed.train(9, 1)
	require.True(t, r.state() == resumed.state())
}

// What goes on from a checkpoint gives the bits of what was never interrupted: values, states, losses that are told late,
// dropout, the factor of the weight decay, a gradient that is pending.
func TestWhatIsLoadedGoesOnAsIfNeverInterrupted(t *testing.T) {
	for rule := range isa.Rules {
		for _, pending := range []bool{false, true} {
			t.Run(fmt.Sprint(isa.RuleTable[rule].Name, pending), func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "checkpoint")
				straight, saved, resumed := newRun(t, rule), newRun(t, rule), newRun(t, rule)
				straight.train(0, 9)
				saved.train(0, 9)
				if pending {
					straight.accumulate()
					saved.accumulate()
				}
				saved.save(file)
				resumed.train(3, 5) // whatever it has been before
				resumed.accumulate()
				require.NoError(t, resumed.load(file))
				for _, r := range []*run{straight, saved, resumed} {
					r.losses = nil
					r.train(9, 8)
				}
				require.Equal(t, straight.losses, saved.losses)
				require.Equal(t, straight.losses, resumed.losses)
				require.NotEmpty(t, straight.state())
				require.True(t, straight.state() == saved.state(), "saving changes nothing")
				require.True(t, straight.state() == resumed.state(), "it goes on alike")
			})
		}
	}
}

// Which cells are known decides what is merged, and so how sums are rounded: a program that goes on after a checkpoint and
// one that is resumed from it learn the same.
func TestAResumedProgramLearnsTheSameCells(t *testing.T) {
	// Two losses of one row, told apart by what comes after its tanh: only loose nodes are merged.
	graph := words(true, []uint32{1, 1}, op(ops.Parameter, dim2, paramW), op(ops.Lookup, dim2, paramTable, 0), op(ops.Tanh, dim2, 1),
		op(ops.CwiseMultiply, dim2, 2, 0), op(ops.SumElements, dim1, 3), op(ops.Lookup, dim2, paramTable, 1), op(ops.Tanh, dim2, 5),
		op(ops.Square, dim2, 6), op(ops.SumElements, dim1, 7), op(ops.Sum, dim1, 2, 4, 8))
	train := func(r *run, count int) {
		for range count {
			g := r.NewGraph()
			_, err := r.contents.Handles[0].FB(g, graph, 9)
			require.NoError(t, err)
			g.Close()
		}
	}
	file := filepath.Join(t.TempDir(), "checkpoint")
	for before := range 40 { // now and then the rounding is the same
		straight, resumed := newRun(t, isa.Momentum), newRun(t, isa.Momentum)
		train(straight, 2+before)
		straight.save(file)
		require.NoError(t, resumed.load(file))
		was, began := straight.Statistics(), resumed.Statistics()
		train(straight, 3)
		train(resumed, 3)
		require.Equal(t, straight.state(), resumed.state())
		is, now := straight.Statistics(), resumed.Statistics()
		require.Equal(t, is.Loose-was.Loose, now.Loose-began.Loose, "nodes outside all templates")
		require.Positive(t, now.Loose-began.Loose, "it learns anew")
	}
}

// The trainer's parameters may have been added in another order: the norm is summed up in that of the file.
func TestTheOrderOfATrainersParametersIsLoaded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	first, second := newRun(t, isa.Adam), newModel(t, 0.05).run(isa.Adam, paramW, paramTable)
	first.train(0, 5)
	first.save(file)
	require.NoError(t, second.load(file))
	require.True(t, first.state() == second.state())
	require.Equal(t, []uint32{paramTable, paramW}, second.contents.Trainers[0].ids)
	first.train(5, 5)
	second.train(5, 5)
	require.True(t, first.state() == second.state())
}

// Batches in flight are waited for; one that failed is told, and nothing is written.
func TestSavingWaitsForBatchesInFlight(t *testing.T) {
	m, h := newAhead(t)
	contents := &Contents{IDs: []uint32{paramW, paramTable}, Trainers: []*Trainer{h.Trainer()}, Handles: []*Handle{h}}
	file := filepath.Join(t.TempDir(), "checkpoint")
	for range 3 {
		require.NoError(t, trainBatch(m, h))
	}
	require.NoError(t, m.SaveCheckpoint(file, contents))
	want := weights(t, m)
	require.NoError(t, trainBatch(m, h))
	require.NoError(t, trainBatch(m, h))
	c, err := OpenCheckpoint(file)
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.Load(m.Engine, contents))
	require.Equal(t, want, weights(t, m))

	g := m.NewGraph()
	defer g.Close()
	_, err = h.FB(g, infinite(), 3)
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "other")
	require.ErrorIs(t, m.SaveCheckpoint(other, contents), ErrNumeric)
	require.NoFileExists(t, other)
	require.NoError(t, m.SaveCheckpoint(other, contents))
}

func TestHostCopiesAreSavedAndLoaded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	m, _ := onGPU(t)
	c := &Contents{IDs: []uint32{paramW, paramTable}}
	mem, err := m.Expose(paramW, Values)
	require.NoError(t, err)
	seen := (*[2]float32)(mem)
	seen[0] = 9
	require.NoError(t, m.SaveCheckpoint(file, c))
	seen[0] = 10
	from, err := OpenCheckpoint(file)
	require.NoError(t, err)
	defer from.Close()
	require.NoError(t, from.Load(m.Engine, c))
	require.Equal(t, [2]float32{9, 2}, *seen)
}

func TestBlobsAreTheProgramsOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	r := newRun(t, isa.SGD)
	r.contents.Blobs = []Blob{{"position", []byte("17")}, {"", nil}, {"order", make([]byte, 1<<20)}}
	r.save(file)
	c, err := OpenCheckpoint(file)
	require.NoError(t, err)
	defer c.Close()
	to := make([]byte, 8)
	n, found, err := c.Blob("position", to)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "17", string(to[:n]))
	n, found, err = c.Blob("order", to)
	require.NoError(t, err)
	require.True(t, found)
	require.EqualValues(t, 1<<20, n)
	n, found, _ = c.Blob("", nil)
	require.True(t, found && n == 0)
	_, found, _ = c.Blob("none", nil)
	require.False(t, found)
	r.contents.Blobs = []Blob{{"a", nil}, {"a", nil}}
	require.ErrorContains(t, r.SaveCheckpoint(file, &r.contents), "twice")
}

// What does not fit is refused, and changes nothing.
func TestACheckpointOfSomethingElseIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	saved := newRun(t, isa.Adam)
	saved.train(0, 4)
	saved.save(file)
	for _, c := range []struct {
		words  string
		rule   isa.Rule
		change func(*run)
	}{
		{"update rule", isa.Momentum, func(*run) {}},
		{"1 trainers and 1 handles", isa.Adam, func(r *run) { r.contents.Handles = nil }},
		{"more trainers", isa.Adam, func(r *run) { r.contents.Trainers = nil }},
		{"not among those", isa.Adam, func(r *run) { r.contents.IDs = r.contents.IDs[:1] }},
		{"make the same", isa.Adam, func(r *run) { r.contents.IDs = []uint32{paramTable, paramW} }},
		{"named twice", isa.Adam, func(r *run) { r.contents.IDs = []uint32{paramW, paramW} }},
		{"2 parameters, 3", isa.Adam, func(r *run) {
			id, err := r.NewParameter(0, "more", dim(2), false, nil)
			require.NoError(r, err)
			r.contents.IDs = append(r.contents.IDs, id)
		}},
		{"2 parameters, here 3", isa.Adam, func(r *run) {
			id, err := r.NewParameter(0, "more", dim(2), false, nil)
			require.NoError(r, err)
			require.NoError(r, r.contents.Trainers[0].Add([]uint32{id}))
			r.contents.IDs = append(r.contents.IDs, id)
		}},
		{"another collection", isa.Adam, func(r *run) {
			other, err := r.NewCollection(0)
			require.NoError(r, err)
			r.params[paramTable].collection = other
		}},
		{`"w" of [2], here it is "x"`, isa.Adam, func(r *run) { r.params[paramW].name = "x" }},
		{`of [2], here it is "w" of [1 2]`, isa.Adam, func(r *run) { r.params[paramW].dim = dim(1, 2) }},
	} {
		r := newRun(t, c.rule)
		r.train(0, 2)
		before := r.state()
		good := r.contents
		c.change(r)
		require.ErrorContains(t, r.load(file), c.words)
		if len(r.params) == 2 && r.params[paramTable].collection == 0 && r.params[paramW].name == "w" && r.params[paramW].dim == dim(2) {
			r.contents = good
			require.True(t, before == r.state(), c.words)
		}
	}
}

// reseal makes all checksums and lengths of a file right that has been changed, as far as its sections can be followed.
func reseal(b []byte) {
	if len(b) < headerBytes {
		return
	}
	le := binary.LittleEndian
	le.PutUint64(b[16:], uint64(len(b)))
	le.PutUint32(b[28:], crc32.Checksum(b[:28], castagnoli))
	for at := headerBytes; at+sectionBytes <= len(b); {
		length := le.Uint64(b[at+8:])
		if length > uint64(len(b)-at-sectionBytes) {
			return
		}
		end := at + sectionHead + int(length)
		le.PutUint32(b[end:], crc32.Checksum(b[at:end], castagnoli))
		at = end + 4
	}
}

// Files damaged at random, with right checksums too: each is loaded or refused, and what is refused has changed nothing.
func TestDamagedCheckpoints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	saved, r := newRun(t, isa.Adam), newRun(t, isa.Adam)
	saved.train(0, 4)
	saved.accumulate()
	saved.contents.Blobs = []Blob{{"position", []byte("17")}}
	saved.save(file)
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	for k := 0; k < len(good); k += 1 + k%5 { // a bit of a byte, and the end
		bad := append([]byte(nil), good...)
		bad[k] ^= 1 << (k % 8)
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		require.ErrorIs(t, r.load(file), ErrFile, "byte %d", k)
		require.NoError(t, os.WriteFile(file, good[:k], 0o600))
		require.ErrorIs(t, r.load(file), ErrFile, "%d bytes", k)
	}
	random, loaded, refused := rand.New(rand.NewSource(1)), 0, 0
	before := r.state()
	for range 600 {
		bad := append([]byte(nil), good...)
		at := random.Intn(len(bad))
		switch random.Intn(4) {
		case 0:
			bad[at] = byte(random.Int())
		case 1:
			bad = append(bad[:at], bad[min(len(bad), at+random.Intn(40)):]...)
		case 2:
			bad = append(bad[:at:at], append(make([]byte, random.Intn(40)), bad[at:]...)...)
		default:
			binary.LittleEndian.PutUint32(bad[at&^3:], []uint32{0, 1, 1<<32 - 1, 1 << 31, 1 << 16}[random.Intn(5)])
		}
		reseal(bad)
		require.NoError(t, os.WriteFile(file, bad, 0o600))
		if err := r.load(file); err != nil {
			refused++
			require.True(t, before == r.state(), "%v", err)
		} else {
			loaded++
			before = r.state()
		}
	}
	require.Greater(t, loaded, 20)
	require.Greater(t, refused, 200)
}

// Later versions may add sections: those that need not be understood are skipped.
func TestSectionsThatAreNotKnown(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	r := newRun(t, isa.SGD)
	r.save(file)
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	with := func(kind, flags uint32) error {
		b := append([]byte(nil), good...)
		b = binary.LittleEndian.AppendUint32(b, kind)
		b = binary.LittleEndian.AppendUint32(b, flags)
		b = binary.LittleEndian.AppendUint64(b, 3)
		b = append(b, "abc"+"sum."...)
		binary.LittleEndian.PutUint32(b[12:], binary.LittleEndian.Uint32(b[12:])+1)
		reseal(b)
		require.NoError(t, os.WriteFile(file, b, 0o600))
		return r.load(file)
	}
	require.NoError(t, with(uint32(planSection), 0))
	require.NoError(t, with(1000, 0))
	require.ErrorContains(t, with(1000, mandatory), "newer library")
	b := append([]byte(nil), good...)
	b[8] = 2
	reseal(b)
	require.NoError(t, os.WriteFile(file, b, 0o600))
	require.ErrorContains(t, r.load(file), "version 2")
}

func TestFilesThatAreNoCheckpoints(t *testing.T) {
	folder := t.TempDir()
	pipe := filepath.Join(folder, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	huge := filepath.Join(folder, "huge")
	require.NoError(t, os.WriteFile(huge, nil, 0o600))
	require.NoError(t, os.Truncate(huge, 64<<30))
	for _, file := range []string{pipe, huge, folder, "/dev/zero", filepath.Join(folder, "none")} {
		_, err := OpenCheckpoint(file)
		require.ErrorIs(t, err, ErrFile, file)
		require.ErrorContains(t, err, file)
	}
	r := newRun(t, isa.SGD)
	require.ErrorIs(t, r.SaveCheckpoint(filepath.Join(folder, "none", "file"), &r.contents), ErrFile)
	require.ErrorIs(t, r.SaveCheckpoint(folder, &r.contents), ErrFile)
	require.ErrorIs(t, r.SaveCheckpoint(pipe, &r.contents), ErrFile)
}

// A file of a library that kept the losses of three batches, or of seven, is read: each loss is its batch's.
func TestLossesOfOtherLibrariesAreRead(t *testing.T) {
	for _, n := range []int{3, 7} {
		const count = 9
		want, losses := Handle{number: 10, count: count}, make([]uint32, n)
		for k := count - n; k < count; k++ {
			losses[k%n] = math.Float32bits(float32(k))
		}
		for k := count - min(n, len(want.losses)); k < count; k++ {
			want.losses[k%len(want.losses)] = float32(k)
		}
		var file bytes.Buffer
		require.NoError(t, binary.Write(&file, binary.LittleEndian, []uint64{want.number, count, 0}))
		require.NoError(t, binary.Write(&file, binary.LittleEndian, losses))
		r := &sectionReader{from: bufio.NewReader(&file), left: uint64(file.Len())}
		require.Equal(t, want, readHandle(r))
		require.NoError(t, r.end())
	}
}
