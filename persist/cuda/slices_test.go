package cuda

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/plan"
)

// squares is a model of so many square matrices, and of a classifier.
func squares(n, size int) (m []plan.Matrix) {
	for k := range n {
		m = append(m, plan.Matrix{Param: uint32(k), Name: fmt.Sprint("W", k), Rows: size, Cols: size, Offset: uint32(k * size * size)})
	}
	return append(m, plan.Matrix{Param: uint32(n), Name: "classifier", Rows: 5, Cols: size, Offset: uint32(n * size * size)})
}

// slicesSpill is a compiler by which the kernels of plans in slices spill.
func slicesSpill() *assembler {
	return &assembler{fits: func(src string) (uint32, uint32) {
		if strings.Contains(src, "#define VPPS_SLICES 1") {
			return 255, 24
		}
		return 70, 0
	}}
}

func TestSlicesAreTakenAsTheSettingsSay(t *testing.T) {
	fits := func() *assembler { return spillsAt() }
	for _, c := range []struct {
		name     string
		settings plan.Settings
		matrices []plan.Matrix
		compiler *assembler
		copies   int // 0: not in slices
		refused  []string
	}{
		{"not asked for", plan.Settings{}, squares(3, 128), fits(), 0, nil},
		{"asked for", plan.Settings{Slices: 1, CTAs: 1}, squares(8, 128), fits(), 16, nil},
		{"asked for, at a pinned number of rows", plan.Settings{Slices: 1, RowsPerWarp: 2, CTAs: 1}, squares(8, 128), fits(), 16, nil},
		{"pinned rows", plan.Settings{Slices: 1, RowsPerWarp: 4}, squares(3, 128), fits(), 33, nil},
		{"bounded copies", plan.Settings{Slices: 1, Copies: 2}, squares(3, 128), fits(), 2, nil},
		{"asked for, but rows do not divide", plan.Settings{Slices: 1}, squares(3, 100), fits(), 0, []string{"slices, as VPPS_PLAN asks for: 100 rows cannot be slices of 8"}},
		{"they spill", plan.Settings{Slices: 1, CTAs: 1}, squares(3, 256), slicesSpill(), 0, []string{"in slices", "in slices", "in slices", "in slices"}},
		{"pinned rows that spill in slices", plan.Settings{Slices: 1, RowsPerWarp: 2}, squares(3, 256), slicesSpill(), 0, []string{"48 registers a thread for weights, in slices, 8 copies: its kernel needs 24 bytes of stack"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := onFakeGPU(t, c.compiler, 132)
			e.settings = c.settings
			p, err := e.Plan(c.matrices)
			require.NoError(t, err)
			require.NoError(t, e.SetPlan(p))
			require.Equal(t, c.copies > 0, p.Slices != nil)
			require.Len(t, p.Refused, len(c.refused))
			for i, want := range c.refused {
				require.Contains(t, p.Refused[i], want)
			}
			if p.Slices != nil {
				require.Equal(t, c.copies, p.Slices.Copies)
				require.Contains(t, p.Report(), "lie in slices")
			}
			if n := c.settings.RowsPerWarp; n > 0 {
				require.Equal(t, n, p.RowsPerWarp)
			}
			require.NotZero(t, p.SetAside)
		})
	}
}
