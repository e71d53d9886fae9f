package jit

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"libvpps/gpu"
	"libvpps/persist/plan"
)

// h200 is the device that plans are made for where there is none.
var h200 = plan.Device{Name: "H200", Processors: 132, Warps: 8, RegistersPer: 255, SetAside: SetAside, SharedPerBlock: 200 << 10}

// model is matrices of these rows and columns.
func model(sizes ...[2]int) (m []plan.Matrix) {
	at := uint32(0)
	for i, s := range sizes {
		m = append(m, plan.Matrix{Param: uint32(i), Name: fmt.Sprint("W", i), Rows: s[0], Cols: s[1], Offset: at})
		at += uint32(s[0] * s[1])
	}
	return m
}

// treeLSTM is the model of the paper's first application: hidden size n, embeddings of d.
func treeLSTM(n, d int) []plan.Matrix {
	in, both, self := [2]int{n, d}, [2]int{n, 2 * n}, [2]int{n, n}
	return model([2]int{5, n}, in, in, in, both, both, both, self, self)
}

// applications are the models of cpp_examples at the paper's sizes.
var applications = map[string][]plan.Matrix{
	"Tree-LSTM 256/256": treeLSTM(256, 256),
	"Tree-LSTM 128/128": treeLSTM(128, 128),
	"Tree-LSTM 384/128": treeLSTM(384, 128),
	"Tree-LSTM 512/128": treeLSTM(512, 128),
	"BiLSTM 256":        model([2]int{1024, 256}, [2]int{1024, 256}, [2]int{1024, 256}, [2]int{1024, 256}, [2]int{256, 512}, [2]int{9, 256}),
	"BiLSTM-char 256": model([2]int{1024, 256}, [2]int{1024, 256}, [2]int{1024, 256}, [2]int{1024, 256},
		[2]int{512, 64}, [2]int{512, 128}, [2]int{512, 64}, [2]int{512, 128}, [2]int{256, 512}, [2]int{9, 256}),
	"RvNN 512":    model([2]int{512, 512}, [2]int{512, 512}, [2]int{512, 512}, [2]int{512, 512}, [2]int{5, 512}),
	"TD-RNN 512":  model([2]int{512, 512}, [2]int{512, 512}, [2]int{512, 512}, [2]int{5, 512}),
	"TD-LSTM 256": model(repeat([2]int{256, 256}, 11, [2]int{5, 256})...),
}

func repeat(size [2]int, n int, rest ...[2]int) [][2]int {
	for range n {
		rest = append([][2]int{size}, rest...)
	}
	return rest
}

// keepsWeights compiles a plan and checks that nothing is spilled.
func keepsWeights(t *testing.T, c gpu.Compiler, p *plan.Plan, arch int, o Options) {
	t.Helper()
	start := time.Now()
	k, err := Compile(c, p, arch, o, nil)
	require.NoError(t, err)
	t.Logf("%s, %d of a gradient: %d in all, %d bytes of stack, %d bytes of code, %.1f s", p.Name(), p.Staging, k.Registers, k.Stack, len(k.Image), time.Since(start).Seconds())
	require.Zero(t, k.Stack)
	require.LessOrEqual(t, k.Registers, p.Registers)
}

// compilerFor finds NVRTC, which needs no GPU.
func compilerFor(t *testing.T, arch int) gpu.Compiler {
	t.Helper()
	if testing.Short() {
		t.Skip("not with -short: compiling kernels takes minutes")
	}
	c, err := gpu.OpenCompiler(0, arch)
	if err != nil {
		t.Skipf("skipped: needs NVRTC that knows sm_%d", arch)
	}
	return c
}

// The kernel must keep its weights in registers: no stack, no spills. One with clocks measures the same
// plan only if it does, too.
func TestKernelsKeepWeightsInRegisters(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		arch, hidden, rpw int
		clocks            bool
	}{{70, 64, 1, false}, {80, 64, 1, false}, {90, 256, 2, false}, {90, 256, 2, true}} {
		t.Run(fmt.Sprintf("sm_%d %d rpw %d clocks %v", x.arch, x.hidden, x.rpw, x.clocks), func(t *testing.T) {
			t.Parallel()
			p, err := plan.RoundRobin(treeLSTM(x.hidden, x.hidden), h200, x.rpw)
			require.NoError(t, err)
			require.Zero(t, p.Outside())
			keepsWeights(t, compilerFor(t, x.arch), p, x.arch, Options{Clocks: x.clocks})
		})
	}
}

// Whatever the sum of registers lets pass is compiled without spills: every number of rows a warp of every application.
// That takes many minutes, so without VPPS_TEST_KERNELS=all it is only what the cost model takes for each, and of
// applications with as many rows a warp only the first.
func TestNoCandidateSpills(t *testing.T) {
	t.Parallel()
	every := os.Getenv("VPPS_TEST_KERNELS") == "all"
	c := compilerFor(t, 90)
	tried := map[int]bool{} // rows a warp
	for _, name := range slices.Sorted(maps.Keys(applications)) {
		d := h200
		d.SharedPerBlock = 186 << 10
		all, err := plan.Candidates(applications[name], d)
		require.NoError(t, err)
		if !every {
			all = plan.Cheapest(all)[:1]
			if tried[all[0].RowsPerWarp] {
				continue
			}
			tried[all[0].RowsPerWarp] = true
		}
		for _, p := range all {
			t.Run(fmt.Sprintf("%s rpw %d", name, p.RowsPerWarp), func(t *testing.T) {
				t.Parallel()
				require.Zero(t, p.Outside())
				keepsWeights(t, c, p, 90, Options{})
			})
		}
	}
}

// What processors have in registers is in a table in constant memory, of which there are 64 KB: as many as a plan may have fit.
func TestTheTableOfPartitionsFits(t *testing.T) {
	many := make([][2]int, 200)
	for i := range many {
		many[i] = [2]int{64, 64}
	}
	d := h200
	d.Processors = 264
	p, err := plan.RoundRobin(model(many...), d, 1)
	require.NoError(t, err)
	require.Equal(t, 7*264, len(p.Partitions), "seven arrays, whose table has at most 2000 entries")
	keepsWeights(t, compilerFor(t, 90), p, 90, Options{})
}

// So must, but for a few registers, the kernel of a model whose matrices do not fit into the registers, with those of shared
// memory and those that are streamed, on devices with little shared memory, too.
func TestKernelsOfLargeModelsSpillLittle(t *testing.T) {
	t.Parallel()
	type kernel struct {
		name               string
		matrices           []plan.Matrix
		arch               int
		processors, shared int
	}
	kernels := []kernel{{"4 x 2048", model(repeat([2]int{2048, 2048}, 4)...), 90, 132, 203}}
	if os.Getenv("VPPS_TEST_KERNELS") == "all" {
		kernels = append(kernels, kernel{"Tree-LSTM 1024", treeLSTM(1024, 1024), 90, 132, 203}, kernel{"Tree-LSTM 2048", treeLSTM(2048, 2048), 90, 132, 203},
			kernel{"Tree-LSTM 1024", treeLSTM(1024, 1024), 80, 108, 139}, kernel{"Tree-LSTM 512", treeLSTM(512, 512), 70, 60, 72}, kernel{"Tree-LSTM 1024", treeLSTM(1024, 1024), 75, 40, 40})
	}
	for _, x := range kernels {
		t.Run(fmt.Sprintf("sm_%d %s", x.arch, x.name), func(t *testing.T) {
			t.Parallel()
			d, c := h200, compilerFor(t, x.arch)
			d.Processors, d.SharedPerBlock = x.processors, x.shared<<10
			p, err := plan.RoundRobin(x.matrices, d, 1)
			require.NoError(t, err)
			t.Log(p.Report())
			require.NotZero(t, p.Outside())
			require.LessOrEqual(t, SharedBytes(p), d.SharedPerBlock)
			k, err := Compile(c, p, x.arch, Options{}, nil)
			require.NoError(t, err)
			t.Logf("%s: %d registers, %d bytes of stack", p.Name(), k.Registers, k.Stack)
			require.LessOrEqual(t, k.Stack, 128)
		})
	}
}

// The interpreter takes no more registers than plans set aside for it.
func TestWhatIsSetAsideForTheInterpreter(t *testing.T) {
	t.Parallel()
	for _, arch := range []int{70, 80, 90} {
		t.Run(fmt.Sprintf("sm_%d", arch), func(t *testing.T) {
			t.Parallel()
			p, err := plan.RoundRobin(nil, h200, 1)
			require.NoError(t, err)
			k, err := Compile(compilerFor(t, arch), p, arch, Options{}, nil)
			require.NoError(t, err)
			t.Logf("%d registers, %d bytes of stack", k.Registers, k.Stack)
			require.LessOrEqual(t, k.Registers+(k.Stack+3)/4, SetAside+plan.GemmStaging)
		})
	}
}

// A quick kernel is there in half the time, and its weights are in registers.
func TestAQuickKernelKeepsWeights(t *testing.T) {
	c := compilerFor(t, 90)
	if !HasQuick(c) {
		t.Skip("skipped: needs NVRTC 12.9 or later")
	}
	p, err := plan.RoundRobin(applications["Tree-LSTM 256/256"], h200, 4)
	require.NoError(t, err)
	var took [2]time.Duration
	for i, quick := range []bool{false, true} {
		k, err := Compile(c, p, 90, Options{Quick: quick}, nil)
		require.NoError(t, err)
		took[i] = k.Took.Compiler
		t.Logf("%.1f s, %d registers, %d bytes of stack", took[i].Seconds(), k.Registers, k.Stack)
		require.Less(t, k.Stack, 4*p.Used)
	}
	require.Less(t, took[1], took[0])
}

// The builds for finding faults compile, too; they may use the stack.
func TestCheckingAndClockBuildsCompile(t *testing.T) {
	t.Parallel()
	for _, arch := range []int{70, 80, 90} {
		t.Run(fmt.Sprintf("sm_%d", arch), func(t *testing.T) {
			t.Parallel()
			c := compilerFor(t, arch)
			p, err := plan.RoundRobin(treeLSTM(32, 32), h200, 1)
			require.NoError(t, err)
			k, err := Compile(c, p, arch, Options{Check: true, Clocks: true}, nil)
			require.NoError(t, err)
			t.Logf("%d registers, %d bytes of stack, %d bytes of code", k.Registers, k.Stack, len(k.Image))
		})
	}
}

// Only a kernel with one product routine or two short ones, whose weights leave registers, has what many items take.
func TestWhichKernelsTakeManyItems(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name      string
		rpw, sums int
	}{{"TD-RNN 512", 4, 32}, {"TD-LSTM 256", 8, 32}, {"RvNN 512", 4, 32}, {"Tree-LSTM 256/256", 4, 16}, {"BiLSTM 256", 4, 16}} {
		p, err := plan.RoundRobin(applications[x.name], h200, x.rpw)
		require.NoError(t, err)
		have, err := Source(p, Options{})
		require.NoError(t, err)
		require.Contains(t, have, fmt.Sprintf("#define VPPS_SUMS %d\n", x.sums), x.name)
		_, _, many, bytes := productSizes(p, p.Matrices[0].Cols)
		require.Equal(t, x.sums == 32, many > 1, x.name)
		require.LessOrEqual(t, bytes, h200.SharedPerBlock, x.name)
	}
}
