package jit

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/gpu"
	"libvpps/persist/plan"
)

// h200 is the device that plans are made for where there is none.
var h200 = plan.Device{Name: "H200", Processors: 132, Warps: 8, RegistersPer: 255, SetAside: 112, SharedPerBlock: 200 << 10}

// treeLSTM is the model of the paper's first application: hidden and embedding size n.
func treeLSTM(n int) []plan.Matrix {
	var m []plan.Matrix
	at := uint32(0)
	add := func(name string, rows, cols int) {
		m = append(m, plan.Matrix{Param: uint32(len(m)), Name: name, Rows: rows, Cols: cols, Offset: at})
		at += uint32(rows * cols)
	}
	add("softmax", 5, n)
	for i := range 3 {
		add(fmt.Sprintf("W%d", i), n, n)
	}
	for i := range 3 {
		add(fmt.Sprintf("U%d", i), n, 2*n)
	}
	for i := range 2 {
		add(fmt.Sprintf("UF%d", i), n, n)
	}
	return m
}

// The kernel must keep its weights in registers: no stack, no spills. No GPU is needed. A
// compilation takes up to half a minute, so the other sizes are compiled only if
// VPPS_TEST_KERNELS is "all".
func TestKernelsKeepWeightsInRegisters(t *testing.T) {
	type kernel struct{ arch, hidden, rpw int }
	kernels := []kernel{{70, 64, 1}, {80, 64, 1}, {90, 256, 2}}
	if os.Getenv("VPPS_TEST_KERNELS") == "all" {
		kernels = append(kernels, kernel{90, 128, 1}, kernel{90, 256, 1}, kernel{90, 256, 4}, kernel{90, 512, 2})
	}
	for _, x := range kernels {
		t.Run(fmt.Sprintf("sm_%d %d rpw %d", x.arch, x.hidden, x.rpw), func(t *testing.T) {
			c, err := gpu.OpenCompiler(0, x.arch)
			if err != nil {
				t.Skipf("skipped: needs NVRTC that knows sm_%d", x.arch)
			}
			p, err := plan.RoundRobin(treeLSTM(x.hidden), h200, x.rpw)
			require.NoError(t, err)
			require.Empty(t, p.Left)
			k, err := Compile(c, p, x.arch, Options{}, nil)
			require.NoError(t, err)
			t.Logf("weights %d of %d registers, %d in all, %d bytes of stack, %d bytes of code", p.Used, p.Budget, k.Registers, k.Stack, len(k.Image))
			require.Zero(t, k.Stack)
			require.LessOrEqual(t, k.Registers, 255)
		})
	}
}

// The builds for finding faults compile, too; they may use the stack.
func TestCheckingAndCountingBuildsCompile(t *testing.T) {
	for _, arch := range []int{70, 80, 90} {
		t.Run(fmt.Sprintf("sm_%d", arch), func(t *testing.T) {
			c, err := gpu.OpenCompiler(0, arch)
			if err != nil {
				t.Skipf("skipped: needs NVRTC that knows sm_%d", arch)
			}
			p, err := plan.RoundRobin(treeLSTM(32), h200, 1)
			require.NoError(t, err)
			k, err := Compile(c, p, arch, Options{Check: true, Count: true}, nil)
			require.NoError(t, err)
			t.Logf("%d registers, %d bytes of stack, %d bytes of code", k.Registers, k.Stack, len(k.Image))
		})
	}
}
