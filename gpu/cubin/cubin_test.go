package cubin

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// testdata holds the two kernels of compiler_test.go in package gpu as NVRTC 12.9
// compiled them: clean keeps its array in registers, indexed cannot.
func read(t testing.TB, name string) []byte {
	image, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return image
}

func TestKernelsOfACubin(t *testing.T) {
	for _, name := range []string{"sm_75.cubin", "sm_90.cubin"} {
		k, err := Kernels(read(t, name))
		require.NoError(t, err)
		require.Len(t, k, 2)
		require.Zero(t, k["clean"].Stack, name)
		require.GreaterOrEqual(t, k["clean"].Regs, 32, name)
		require.Equal(t, 128, k["indexed"].Stack, name)
		require.Zero(t, k["clean"].Shared)
	}
}

func TestNoCubin(t *testing.T) {
	for _, image := range [][]byte{nil, []byte("\x7fELF"), []byte("// .version 8.0\n.target sm_90 and no machine code")} {
		_, err := Kernels(image)
		require.ErrorContains(t, err, "cubin")
	}
}

// A damaged entry of the kernel cache is an error or harmless, never a crash.
func TestDamagedCubin(t *testing.T) {
	image := read(t, "sm_75.cubin")
	for n := 0; n < len(image); n += 7 {
		Kernels(image[:n]) //nolint:errcheck // any answer will do
	}
	for n := range image {
		damaged := append([]byte(nil), image...)
		damaged[n] ^= 0xff
		Kernels(damaged) //nolint:errcheck // any answer will do
	}
}
