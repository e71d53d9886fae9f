//go:build cuda

package gpu

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"libvpps/gpu/cubin"
)

// The tests of this file run on a real GPU, with VPPS_TEST_GPU=1, as do those of
// driver_test.go that are not about the stand-in.

const onDevice = `
// Every block adds 1 to *bar and waits for all others: hangs unless all run at once.
extern "C" __global__ void __launch_bounds__(256) together(unsigned *bar, unsigned *out, int rounds)
{
	extern __shared__ float shared[];
	for (int r = 0; r < rounds; r++) {
		__syncthreads();
		if (threadIdx.x == 0) {
			__threadfence();
			atomicAdd(bar, 1);
			while (*(volatile unsigned *)bar < (r + 1) * gridDim.x) {}
			__threadfence();
		}
		__syncthreads();
	}
	shared[threadIdx.x] = blockIdx.x;
	if (threadIdx.x == 0) out[blockIdx.x] = (unsigned)shared[0] + rounds;
}
extern "C" __global__ void crash(unsigned *p) { *(unsigned *)8 = 1; }`

func realGPU(t testing.TB) (Device, Module) {
	if os.Getenv("VPPS_TEST_GPU") == "" {
		t.Skip("skipped: needs a GPU")
	}
	d := open(t)
	i := d.Info()
	c, err := OpenCompiler(i.DriverVersion/1000, 10*i.Major+i.Minor)
	require.NoError(t, err)
	image, log, err := c.Compile("device_test.cu", onDevice, []string{fmt.Sprintf("--gpu-architecture=sm_%d%d", i.Major, i.Minor)})
	require.NoError(t, err, log)
	said, err := cubin.Kernels(image)
	require.NoError(t, err)
	m, err := d.Load(image)
	require.NoError(t, err)
	f, err := m.Function("together")
	require.NoError(t, err)
	require.Equal(t, f.Registers(), said["together"].Regs, "the cubin and the driver agree")
	require.Equal(t, f.LocalBytes(), said["together"].Stack)
	return d, m
}

func TestCooperativeLaunchOnGPU(t *testing.T) {
	d, m := realGPU(t)
	i := d.Info()
	t.Logf("%+v", i)
	require.True(t, i.Cooperative)
	f, err := m.Function("together")
	require.NoError(t, err)
	const shared = 100 << 10
	require.NoError(t, f.SetMaxShared(shared))
	perSM, err := f.MaxBlocksPerSM(256, shared)
	require.NoError(t, err)
	require.Positive(t, perSM)

	p, err := d.Alloc(int64(4 * (i.SMs + 1)))
	require.NoError(t, err)
	args := make([]byte, 24)
	binary.LittleEndian.PutUint64(args, uint64(p))
	binary.LittleEndian.PutUint64(args[8:], uint64(p)+4)
	binary.LittleEndian.PutUint32(args[16:], 1000)
	offsets := []uint32{0, 8, 16}
	a, err := d.NewTimedEvent()
	require.NoError(t, err)
	b, err := d.NewTimedEvent()
	require.NoError(t, err)
	before := d.Counts()
	require.NoError(t, d.Memset32(p, 0, 1))
	require.NoError(t, a.Record())
	require.NoError(t, d.Launch(f, i.SMs, 256, shared, args, offsets))
	require.NoError(t, b.Record())
	out := make([]uint32, i.SMs)
	require.NoError(t, d.CopyFromDevice(unsafe.Pointer(&out[0]), p+4, 4*i.SMs))
	require.Equal(t, uint32(1000+i.SMs-1), out[i.SMs-1])
	us, err := b.Elapsed(a)
	require.NoError(t, err)
	t.Logf("1000 barriers of %d blocks: %.0f us on the device", i.SMs, us)
	require.Equal(t, uint64(1), d.Counts().Launches-before.Launches)

	// What the host pays: calls that return before the device is done.
	binary.LittleEndian.PutUint32(args[16:], 0)
	e, err := d.NewEvent()
	require.NoError(t, err)
	h, err := d.AllocHost(64 << 10)
	require.NoError(t, err)
	q, err := d.Alloc(64 << 10)
	require.NoError(t, err)
	cost := func(what string, call func() error) {
		const n = 200
		require.NoError(t, d.Synchronize())
		start := time.Now()
		for range n {
			if err := call(); err != nil {
				t.Fatal(what, err)
			}
		}
		each := time.Since(start) / n
		require.NoError(t, d.Synchronize())
		t.Logf("%-34s %v of host time, %v with the device's", what, each, time.Since(start)/n)
	}
	for range 2 {
		cost("launch", func() error { return d.Launch(f, i.SMs, 256, shared, args, offsets) })
		cost("copy of 64 KiB from pinned memory", func() error { return d.CopyToDevice(q, h.Mem, 64<<10) })
		cost("event record", e.Record)
		cost("timed event record", a.Record)
		cost("event query", func() error { _, err := e.Done(); return err })
		cost("copy of 4 bytes back, waiting", func() error { return d.CopyFromDevice(unsafe.Pointer(&out[0]), q, 4) })
		cost("launch, then copy 4 bytes back", func() error {
			if err := d.Launch(f, i.SMs, 256, shared, args, offsets); err != nil {
				return err
			}
			return d.CopyFromDevice(unsafe.Pointer(&out[0]), q, 4)
		})
	}
}

func TestTooManyBlocksOnGPU(t *testing.T) {
	d, m := realGPU(t)
	f, err := m.Function("together")
	require.NoError(t, err)
	err = d.Launch(f, 100*d.Info().SMs, 256, 0, make([]byte, 24), []uint32{0, 8, 16})
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", e.Name)
	require.NoError(t, d.Synchronize(), "the device is still usable")
}

func TestOutOfMemoryOnGPU(t *testing.T) {
	d, _ := realGPU(t)
	_, err := d.Alloc(1 << 50)
	var e *Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.OutOfMemory(), err)
	require.NoError(t, d.Synchronize(), "the device is still usable")
}

// A bad address costs the process its context, so this runs in one of its own.
func TestFatalErrorOnGPU(t *testing.T) {
	d, m := realGPU(t)
	if os.Getenv("VPPS_TEST_CRASH") == "" {
		child := exec.Command(os.Args[0], "-test.v", "-test.run=^TestFatalErrorOnGPU$")
		child.Env = append(os.Environ(), "VPPS_TEST_CRASH=1")
		out, err := child.CombinedOutput()
		require.NoError(t, err, string(out))
		t.Logf("%s", out)
		return
	}
	f, err := m.Function("crash")
	require.NoError(t, err)
	require.NoError(t, d.Launch(f, 1, 1, 0, make([]byte, 8), []uint32{0}))
	err = d.Synchronize()
	var e *Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Fatal(), err)
	_, err = d.Alloc(16)
	t.Log(err)
	require.Error(t, err, "and stays lost")
	require.Error(t, d.Close())
}
