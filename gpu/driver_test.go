//go:build cuda

package gpu

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"libvpps/gpu/cudaload"
)

// The tests of this file run against a stand-in for libcuda.so.1, compiled here:
// loader, forwarders, gorgonia.org/cu and the packing of launches need no GPU.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		panic(err)
	}
	if os.Getenv("VPPS_TEST_GPU") == "" {
		lib := filepath.Join(dir, "libcuda.so.1")
		out, err := exec.Command("cc", "-shared", "-fPIC", "-w", "-o", lib, "-Icudaload",
			"testdata/fakecuda/all.c", "testdata/fakecuda/some.c").CombinedOutput()
		if err != nil {
			panic(string(out))
		}
		os.Setenv("VPPS_LIBCUDA", lib)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func onFake(t testing.TB) Device {
	if os.Getenv("VPPS_TEST_GPU") != "" {
		t.Skip("skipped: needs the stand-in, VPPS_TEST_GPU is set")
	}
	return open(t)
}

func open(t testing.TB) Device {
	drv, err := OpenDriver()
	require.NoError(t, err)
	d, err := drv.Open(0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestDeviceIsDescribed(t *testing.T) {
	i := onFake(t).Info()
	require.Equal(t, "Fake GPU", i.Name)
	require.Equal(t, 9, i.Major)
	require.Equal(t, 132, i.SMs)
	require.Equal(t, 65536, i.RegsPerSM)
	require.Equal(t, 232448, i.SharedPerBlockOptin)
	require.Equal(t, 13000, i.DriverVersion)
	require.True(t, i.Cooperative)
}

func TestOrdinalOutOfRange(t *testing.T) {
	drv, err := OpenDriver()
	require.NoError(t, err)
	_, err = drv.Open(99)
	require.ErrorContains(t, err, "open GPU 99")
}

func TestMemoryMovesAndIsCounted(t *testing.T) {
	d := open(t)
	before := d.Counts()
	p, err := d.Alloc(64)
	require.NoError(t, err)
	q, err := d.Alloc(64)
	require.NoError(t, err)
	h, err := d.AllocHost(64)
	require.NoError(t, err)
	in := unsafe.Slice((*uint32)(h.Mem), 16)
	for i := range in {
		in[i] = uint32(i)
	}
	require.NoError(t, d.CopyAhead(p, h.Mem, 64))
	require.ErrorContains(t, d.CopyAhead(p, unsafe.Pointer(new(uint32)), 4), "pinned")
	require.NoError(t, d.Memset32(p, 7, 4))
	require.NoError(t, d.CopyOnDevice(q, p, 64))
	out := make([]uint32, 16)
	require.NoError(t, d.CopyFromDevice(unsafe.Pointer(&out[0]), q, 64))
	require.Equal(t, []uint32{7, 7, 7, 7, 4, 5}, out[:6])

	now := d.Counts()
	require.Equal(t, uint64(1), now.CopiesToDevice-before.CopiesToDevice)
	require.Equal(t, uint64(1), now.CopiesFromDevice-before.CopiesFromDevice)
	require.Equal(t, uint64(3), now.Allocs-before.Allocs)
	require.Zero(t, now.Launches-before.Launches)

	require.NoError(t, d.FreeHost(h))
	require.Error(t, d.FreeHost(h), "freed twice")
	require.NoError(t, d.Free(p))
	require.NoError(t, d.Free(q))
	require.NoError(t, d.Free(0))
}

func TestCopyWaitsUnlessPinned(t *testing.T) {
	d := onFake(t)
	p, _ := d.Alloc(64)
	h, _ := d.AllocHost(64)
	loose := make([]byte, 64)
	waits := func(src unsafe.Pointer) uint64 {
		n := cudaload.Calls("cuStreamSynchronize")
		require.NoError(t, d.CopyToDevice(p, src, 64))
		return cudaload.Calls("cuStreamSynchronize") - n
	}
	require.Zero(t, waits(h.Mem))
	require.Equal(t, uint64(1), waits(unsafe.Pointer(&loose[0])))
}

func TestLaunchPassesParametersByOffset(t *testing.T) {
	d := onFake(t)
	p, err := d.Alloc(8)
	require.NoError(t, err)
	m, err := d.Load([]byte("\x7fELF...."))
	require.NoError(t, err)
	f, err := m.Function("store")
	require.NoError(t, err)
	require.Equal(t, 168, f.Registers())
	require.Zero(t, f.LocalBytes())
	require.NoError(t, f.SetMaxShared(100<<10))
	n, err := f.MaxBlocksPerSM(256, 100<<10)
	require.NoError(t, err)
	require.Equal(t, 1, n)

	args := make([]byte, 24)
	binary.LittleEndian.PutUint64(args, uint64(p))
	binary.LittleEndian.PutUint64(args[16:], 0x1122334455667788)
	before := d.Counts().Launches
	require.NoError(t, d.Launch(f, 132, 256, 100<<10, args, []uint32{0, 16}))
	require.Equal(t, before+1, d.Counts().Launches)
	var got uint64
	require.NoError(t, d.CopyFromDevice(unsafe.Pointer(&got), p, 8))
	require.Equal(t, uint64(0x1122334455667788), got)

	var e *Error
	require.ErrorAs(t, d.Launch(f, 133, 256, 0, args, []uint32{0, 16}), &e)
	require.Equal(t, 720, e.Code)
	require.False(t, e.Fatal())
	require.NoError(t, m.Unload())
}

func TestEvents(t *testing.T) {
	d := open(t)
	a, err := d.NewTimedEvent()
	require.NoError(t, err)
	b, err := d.NewTimedEvent()
	require.NoError(t, err)
	require.NoError(t, a.Record())
	require.NoError(t, b.Record())
	require.NoError(t, b.Wait())
	done, err := a.Done()
	require.NoError(t, err)
	require.True(t, done)
	us, err := b.Elapsed(a)
	require.NoError(t, err)
	require.GreaterOrEqual(t, us, 0.0)
	c, err := d.NewEvent()
	require.NoError(t, err)
	require.NoError(t, c.Record())
	require.NoError(t, c.Wait())
	_, err = c.Elapsed(a)
	require.ErrorContains(t, err, "NewTimedEvent")
	require.NoError(t, c.Close())
	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
}

func TestErrorsNameThingReasonAndCure(t *testing.T) {
	d := onFake(t)
	_, err := d.Alloc(1 << 40)
	require.EqualError(t, err, "allocate 1099511627776 bytes on GPU 0 (1000 of 1073741824 are free): "+
		"CUDA_ERROR_OUT_OF_MEMORY (2): as the fake driver was told: "+
		"use smaller batches or a smaller model, or end other programs on this GPU")
	var e *Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.OutOfMemory())

	_, err = d.Load([]byte("something else"))
	require.ErrorContains(t, err, "load 14 bytes of machine code")

	t.Setenv("VPPS_FAKE_FAIL", "cuStreamSynchronize:700")
	err = d.Synchronize()
	os.Unsetenv("VPPS_FAKE_FAIL")
	require.ErrorAs(t, err, &e)
	require.True(t, e.Fatal())
}

// The host's own CUDA context must be current again after every call.
func TestCallersContextIsLeftAlone(t *testing.T) {
	d := open(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				p, err := d.Alloc(16)
				if err == nil {
					err = d.Memset32(p, 1, 4)
				}
				if err == nil {
					err = d.Free(p)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, cudaload.Calls("cuCtxPushCurrent_v2"), cudaload.Calls("cuCtxPopCurrent_v2"))
}

func TestClosedDeviceSaysSo(t *testing.T) {
	drv, err := OpenDriver()
	require.NoError(t, err)
	d, err := drv.Open(0)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	_, err = d.Alloc(16)
	require.ErrorContains(t, err, "closed")
	require.ErrorContains(t, d.Synchronize(), "closed")
}

// What a launch costs the host, beside the driver's own time.
func BenchmarkLaunch(b *testing.B) {
	d := onFake(b)
	m, _ := d.Load([]byte("\x7fELF...."))
	f, err := m.Function("k")
	require.NoError(b, err)
	args := make([]byte, 64)
	offsets := []uint32{0, 8, 16, 24, 32, 40, 48, 56}
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Launch(f, 132, 256, 0, args, offsets); err != nil {
			b.Fatal(err)
		}
	}
}
