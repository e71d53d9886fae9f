package persist

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/gpu"
	"libvpps/gpu/mocks"
	"libvpps/persist/reference"
)

// Random programs that are killed and resumed. A program trains graphs that come again and again, in calls of all kinds, and saves
// checkpoints at random moments. Whoever goes on from one of these does what the program did after it, bit by bit.

// turn is one call of a program.
type turn struct {
	act     act
	graph   *reference.RandomGraph
	trainer int
	saves   bool // a checkpoint, before it
}

// program is the turns of a random program, and what makes the worlds in which it runs.
type program struct {
	*testing.T
	world  func(reversed bool) *world
	turns  []turn
	folder string
}

func newProgram(t *testing.T, n uint64, compiler gpu.Compiler, folder string) *program {
	p := &program{T: t, folder: folder, world: func(reversed bool) *world { return newWorld(t, source(n), compiler, reversed) }}
	w := p.world(false)
	defer w.engine.Close()
	rng := rand.New(rand.NewPCG(*tortureSeed^0x5a7e, n))
	var pool []*reference.RandomGraph
	for range 1 + rng.IntN(4) {
		g, err := reference.Random(rng.Uint64(), reference.Options{Nodes: 4 + rng.IntN(8), Sentences: rng.IntN(8), Params: w.model.Params, Random: true, Total: true})
		require.NoError(t, err)
		pool = append(pool, g)
	}
	apart := rng.IntN(3) == 0 // updates of their own, or fb alone
	for range 4 + rng.IntN(40) {
		x := turn{graph: pool[rng.IntN(len(pool))], trainer: rng.IntN(len(w.real)), saves: rng.IntN(12) == 0}
		if apart {
			x.act = []act{actFB, actFB, actBackward, actFull, actUpdate}[rng.IntN(5)]
		}
		p.turns = append(p.turns, x)
	}
	p.turns[rng.IntN(len(p.turns))].saves = true
	return p
}

func (p *program) file(turn int, resumed bool) string {
	return filepath.Join(p.folder, fmt.Sprintf("%d %v", turn, resumed))
}

// contentsOf is what a checkpoint of a world holds: all.
func contentsOf(w *world) *Contents {
	c := &Contents{Trainers: w.real, Handles: w.handles}
	for id := range w.model.Params {
		c.IDs = append(c.IDs, uint32(id))
	}
	return c
}

// run makes the turns from one on: from the first, or from the checkpoint of another. It returns what each call told, behind
// an empty text, and what is there in the end.
func (p *program) run(from int, resumed bool) (told []string, state string, what string) {
	w := p.world(resumed) // a checkpoint has the order of a trainer's parameters, too
	defer w.engine.Close()
	c := contentsOf(w)
	if resumed {
		file, err := OpenCheckpoint(p.file(from, false))
		w.ok(err)
		w.ok(file.Load(w.engine, c))
		file.Close()
	}
	told = []string{""}
	for n := from; n < len(p.turns); n++ {
		x := &p.turns[n]
		if x.saves && !(resumed && n == from) {
			if err := w.engine.SaveCheckpoint(p.file(n, resumed), c); err != nil { // of a batch in flight
				told[len(told)-1] += fmt.Sprint("; then ", err)
				w.ok(w.engine.SaveCheckpoint(p.file(n, resumed), c))
			}
		}
		told = append(told, w.call(x))
	}
	if _, err := w.engine.Factor(0); err != nil { // likewise
		told[len(told)-1] += fmt.Sprint("; then ", err)
	}
	return told, stateOf(p, w.engine, c), w.what
}

// call makes one call; losses may become whatever they like.
func (w *world) call(x *turn) string {
	if x.act == actUpdate {
		steps, err := w.real[x.trainer].Update()
		return fmt.Sprint("update: ", steps, err)
	}
	g := w.engine.NewGraph()
	defer g.Close()
	if x.act == actFB {
		loss, err := w.handles[x.trainer].FB(g, &x.graph.Words, x.graph.Loss)
		return fmt.Sprint("fb: ", loss, err)
	}
	loss := make([]float32, 1)
	err := g.Backward(&x.graph.Words, x.graph.Loss, x.act == actFull)
	if err == nil {
		err = g.Value(nil, x.graph.Loss, loss)
	}
	return fmt.Sprint("backward: ", loss, err)
}

// TestResumedRuns kills random programs, and resumes them from every checkpoint.
func TestResumedRuns(t *testing.T) {
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	compiler := mocks.NVRTC(t)
	folder, programs, resumed := t.TempDir(), 0, 0
	figures := func() string { return fmt.Sprintf("%d resumed runs of %d programs", resumed, programs) }
	rounds(t, 2*time.Second, figures, func(n uint64) {
		p := newProgram(t, n, compiler, folder)
		told, state, what := p.run(0, false)
		programs++
		for from := range p.turns {
			if !p.turns[from].saves {
				continue
			}
			resumed++
			again, end, _ := p.run(from, true)
			if k := firstDifference(told[from+1:], again[1:]); k >= 0 {
				t.Fatalf("%s\nresumed before turn %d of %d: turn %d: %s\nwithout a break: %s", what, from, len(p.turns), from+k, again[k+1], told[from+k+1])
			}
			if end != state {
				t.Fatalf("%s\nresumed before turn %d of %d: all that was told is the same, what is there in the end is not", what, from, len(p.turns))
			}
		}
	})
}

func firstDifference(a, b []string) int {
	for k := range a {
		if a[k] != b[k] {
			return k
		}
	}
	return -1
}
