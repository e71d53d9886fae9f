package gpu

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/gpu/cubin"
)

// The tests of this file run wherever NVRTC is; they need no driver and no GPU.
func compiler(t *testing.T) Compiler {
	c, err := OpenCompiler(0)
	if err != nil {
		t.Skip("skipped: needs NVRTC")
	}
	return c
}

const source = `
extern "C" __global__ void __launch_bounds__(256) clean(float *x, int n)
{
	float w[32];
	#pragma unroll
	for (int i = 0; i < 32; i++) w[i] = x[threadIdx.x * 32 + i];
	for (int k = 0; k < n; k++)
		#pragma unroll
		for (int i = 0; i < 32; i++) w[i] = w[i] * w[(i + 1) % 32];
	#pragma unroll
	for (int i = 0; i < 32; i++) x[threadIdx.x * 32 + i] = w[i];
}
extern "C" __global__ void __launch_bounds__(256) indexed(float *x, int n)
{
	float w[32];
	for (int i = 0; i < 32; i++) w[i] = x[threadIdx.x * 32 + i];
	for (int k = 0; k < n; k++) w[(k * n) % 32] += w[(k * 7 + n) % 32];
	for (int i = 0; i < 32; i++) x[threadIdx.x * 32 + i] = w[i];
}`

func TestCubinTellsRegistersAndStack(t *testing.T) {
	c := compiler(t)
	major, minor := c.Version()
	t.Logf("NVRTC %d.%d, archs %v", major, minor, c.Archs())
	compiled := 0
	for _, arch := range []int{70, 80, 90} {
		if !slices.Contains(c.Archs(), arch) {
			continue
		}
		compiled++
		image, log, err := c.Compile("k.cu", source, []string{fmt.Sprintf("--gpu-architecture=sm_%d", arch), "--std=c++14"})
		require.NoError(t, err, log)
		k, err := cubin.Kernels(image)
		require.NoError(t, err)
		require.Zero(t, k["clean"].Stack)
		require.GreaterOrEqual(t, k["clean"].Regs, 32)
		require.Less(t, k["clean"].Regs, 80)
		require.Equal(t, 128, k["indexed"].Stack, "an array indexed at run time lives in memory")
	}
	require.NotZero(t, compiled)
}

func TestCompileErrorComesWithTheLog(t *testing.T) {
	_, log, err := compiler(t).Compile("bad.cu", "this is no CUDA", []string{"--gpu-architecture=sm_80"})
	require.ErrorContains(t, err, "bad.cu")
	require.Contains(t, log, "bad.cu(1): error")
}

func TestCompileWantsARealArchitecture(t *testing.T) {
	_, _, err := compiler(t).Compile("k.cu", source, []string{"--gpu-architecture=compute_80"})
	require.Error(t, err)
}

func TestNVRTCFileThatIsNotThere(t *testing.T) {
	t.Setenv("VPPS_NVRTC", "/nowhere/libnvrtc.so.12")
	_, err := OpenCompiler(0)
	require.ErrorContains(t, err, "/nowhere/libnvrtc.so.12")
	require.ErrorContains(t, err, "VPPS_NVRTC")
}

func TestNoNVRTCForTheArchitecture(t *testing.T) {
	compiler(t)
	_, err := OpenCompiler(0, 1)
	require.ErrorContains(t, err, "makes no code for sm_1")
}
