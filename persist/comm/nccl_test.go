//go:build cuda

package comm

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"libvpps/gpu"
	"libvpps/gpu/mocks"
)

// Ranks that NCCL connects, on stand-ins for the driver and NCCL: all that groups of other kinds are tested for, and what
// is NCCL's own. With VPPS_TEST_GPU=1 it is the real one, for as many ranks as there are GPUs.

func TestMain(m *testing.M) {
	makers["NCCL"] = newNCCL
	onHost := sumBF16
	sumBF16 = func(c Communicator, x []float32) error {
		if c, ok := c.(*nccl); ok {
			return c.sumPacked(x)
		}
		return onHost(c, x)
	}
	if realGPUs() {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "nccl")
	if err != nil {
		panic(err)
	}
	for name, variable := range map[string]string{"libcuda.so.1": "VPPS_LIBCUDA", "libnccl.so.2": "VPPS_NCCL"} {
		file, err := mocks.Library(dir, name)
		if err != nil {
			panic(err)
		}
		os.Setenv(variable, file)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func realGPUs() bool { return os.Getenv("VPPS_TEST_GPU") != "" }

func needsStandins(t *testing.T) {
	t.Helper()
	if realGPUs() {
		t.Skip("skipped: needs the stand-ins, VPPS_TEST_GPU is set")
	}
}

func newNCCL(t *testing.T, size int, patience time.Duration) []Communicator {
	t.Helper()
	all := newNCCLFor(t, size)
	for _, err := range each(all, Communicator.Barrier) { // the library makes connections when they are first used
		require.NoError(t, err)
	}
	for _, c := range all {
		c := c.(*nccl)
		c.number, c.patience = 0, patience
		clear(words(c.records, 0, c.each*(size+1))) // a number stands for one call
	}
	return all
}

// newNCCLFor makes a group of a test or benchmark.
func newNCCLFor(t testing.TB, size int) []Communicator {
	t.Helper()
	driver, err := gpu.OpenDriver()
	require.NoError(t, err)
	gpus, err := driver.DeviceCount()
	require.NoError(t, err)
	if realGPUs() && size > gpus {
		t.Skipf("skipped: needs %d GPUs, there are %d", size, gpus)
	}
	id, err := NCCLID()
	require.NoError(t, err)
	all := make([]Communicator, size)
	errs := make(chan error, size)
	for rank := range all {
		go func() {
			var err error
			all[rank], err = NewNCCL(NCCL{Device: rank % gpus, Rank: rank, Size: size, ID: id, Patience: long})
			errs <- err
		}()
	}
	for range all {
		require.NoError(t, <-errs)
	}
	for _, c := range all {
		t.Cleanup(c.(Held).Close)
	}
	return all
}

// onDevice is floats in the memory of a rank's device.
func onDevice(t testing.TB, c Communicator, x []float32) gpu.Ptr {
	t.Helper()
	at, err := c.(*nccl).dev.Alloc(int64(4 * len(x)))
	require.NoError(t, err)
	require.NoError(t, c.(*nccl).dev.CopyToDevice(at, unsafe.Pointer(&x[0]), 4*len(x)))
	return at
}

// sumPacked sums floats as numbers of bfloat16 in the device's memory.
func (c *nccl) sumPacked(x []float32) error {
	words := append(packBF16(x), 0) // a number, for its address
	at, err := c.dev.Alloc(int64(4 * len(words)))
	if err != nil {
		return err
	}
	defer func() { _ = c.dev.Free(at) }()
	err = c.dev.CopyToDevice(at, unsafe.Pointer(&words[0]), 4*len(words))
	if err == nil {
		_, err = c.SumBF16(uint64(at), 2*wordsOfBF16(len(x)), nil)
	}
	if err == nil {
		err = c.dev.CopyFromDevice(unsafe.Pointer(&words[0]), at, 4*len(words))
	}
	unpackBF16(words, x)
	return err
}

// sumOf is a sum that no words go with.
func sumOf(c Communicator, ranges []gpu.Range, scale *float32) error {
	_, err := c.(OnDevice).Sum(ranges, scale, nil)
	return err
}

// Ranges of a device's memory are summed where they are or elsewhere, weighed or not; a rank's own stay.
func TestSumsOnDevices(t *testing.T) {
	ranks := newNCCL(t, 2, long)
	for _, weighed := range []bool{false, true} {
		succeed(t, ranks, func(c Communicator) error {
			scale, factor := (*float32)(nil), float32(1)
			if weighed {
				factor = float32(1+c.Rank()) / 2
				scale = &factor
			}
			own := onDevice(t, c, []float32{1, 2, 3, float32(c.Rank())})
			sums := onDevice(t, c, make([]float32, 4))
			_, err := c.(OnDevice).Sum([]gpu.Range{
				{From: uint64(own), To: uint64(sums), N: 2},
				{From: uint64(own + 12), To: uint64(own + 12), N: 1},
			}, scale, nil)
			require.NoError(t, err)
			var have [8]float32
			require.NoError(t, c.(*nccl).dev.CopyFromDevice(unsafe.Pointer(&have[0]), own, 16))
			require.NoError(t, c.(*nccl).dev.CopyFromDevice(unsafe.Pointer(&have[4]), sums, 16))
			if weighed {
				require.Equal(t, [8]float32{1, 2, 3, 1, 1.5, 3, 0, 0}, have)
			} else {
				require.Equal(t, [8]float32{1, 2, 3, 1, 2, 4, 0, 0}, have)
			}
			return nil
		})
	}
	require.Equal(t, 1, ranks[1].(OnDevice).Device())
}

// Words go with a sum if all ranks give some that fit into a record. Records grow with what all-gathers bring, up to a bound,
// and calls of all kinds work with the larger ones.
func TestWordsGoWithSums(t *testing.T) {
	ranks := newNCCL(t, 2, long)
	given := func(c Communicator, n int) []uint32 {
		w := make([]uint32, n)
		for k := range w {
			w[k] = uint32(1000*c.Rank() + k)
		}
		return w
	}
	carried := func(there bool, lengths ...int) {
		t.Helper()
		succeed(t, ranks, func(c Communicator) error {
			at := onDevice(t, c, []float32{1, 2})
			all, err := c.(OnDevice).Sum([]gpu.Range{{From: uint64(at), To: uint64(at), N: 2}}, nil, given(c, lengths[c.Rank()]))
			require.NoError(t, err)
			var sums [2]float32
			require.NoError(t, c.(*nccl).dev.CopyFromDevice(unsafe.Pointer(&sums), at, 8))
			require.Equal(t, [2]float32{2, 4}, sums)
			if !there {
				require.Nil(t, all)
				return nil
			}
			for rank := range ranks {
				require.Equal(t, given(ranks[rank], lengths[rank]), all[rank])
			}
			return nil
		})
	}
	gather := func(n int) {
		t.Helper()
		succeed(t, ranks, func(c Communicator) error {
			all, err := c.AllGather(given(c, n+c.Rank()))
			require.NoError(t, err)
			require.Equal(t, given(ranks[1], n+1), all[1])
			return nil
		})
	}
	const room = recordWords - headerWords - 1
	carried(true, 1, 7)
	carried(false, 0, 7)
	carried(false, 7, 0)
	carried(true, room, 1)
	carried(false, room+1, 1)
	gather(room)
	carried(true, room+1, room+1)
	for _, n := range []int{5000, 100, mostRecordWords} {
		gather(n)
		succeed(t, ranks, Communicator.Barrier)
	}
	carried(true, 5000, 1)
	carried(true, 1, mostRecordWords/2-headerWords-1)
	carried(false, 1, mostRecordWords/2-headerWords)
	require.Equal(t, mostRecordWords/2, ranks[0].(*nccl).each)
	succeed(t, ranks, func(c Communicator) error {
		x := []float32{1}
		require.NoError(t, c.AllReduce(x))
		require.Equal(t, float32(2), x[0])
		at := onDevice(t, c, []float32{0})
		all, err := c.(OnDevice).SumBF16(uint64(at), 2, given(c, 3))
		require.Equal(t, given(ranks[1], 3), all[1])
		return err
	})
	ranks[1].Abort(errors.New("out of paper"))
	require.ErrorContains(t, ranks[0].Barrier(), "out of paper")
}

// A rank that has no memory for larger records ends the group.
func TestNoMemoryForLargerRecords(t *testing.T) {
	needsStandins(t)
	ranks := newNCCL(t, 2, 200*time.Millisecond)
	c := ranks[0].(*nccl)
	require.NoError(t, c.enlarge(call{}, 10), "they are large enough")
	t.Setenv("VPPS_FAKE_FAIL", "cuMemHostAlloc:2")
	require.ErrorIs(t, c.enlarge(call{kind: allGather}, 1000), ErrAborted)
	t.Setenv("VPPS_FAKE_FAIL", "")
	require.ErrorIs(t, c.Barrier(), ErrAborted)
	require.Equal(t, recordWords, c.each)
}

// A library that is missing, too old or another one is named, and what to do about it; so is a function that fails.
func TestNCCLThatCannotBeUsed(t *testing.T) {
	needsStandins(t)
	good := os.Getenv("VPPS_NCCL")
	refused := func(err error, words ...string) {
		t.Helper()
		require.ErrorIs(t, err, ErrUnavailable)
		for _, w := range words {
			require.ErrorContains(t, err, w)
		}
	}
	id, err := NCCLID()
	require.NoError(t, err)
	require.NoError(t, FindNCCL())
	name, err := gpu.FindGroups()
	require.NoError(t, err)
	require.Equal(t, "NCCL 2.23.4 ("+good+")", name)
	one := NCCL{Size: 1, ID: id, Patience: long}
	t.Setenv("VPPS_NCCL", "/nowhere/libnccl.so.2")
	_, err = NCCLID()
	refused(err, "no usable NCCL: install NCCL or the Python package nvidia-nccl-cu12 or -cu13, or set VPPS_NCCL", "/nowhere/libnccl.so.2")
	_, err = NewNCCL(one)
	refused(err, "/nowhere/libnccl.so.2")
	refused(FindNCCL(), "/nowhere/libnccl.so.2")
	t.Setenv("VPPS_NCCL", os.Getenv("VPPS_LIBCUDA"))
	_, err = NCCLID()
	refused(err, "it has no ncclGetVersion")
	t.Setenv("VPPS_NCCL", good)
	for code, version := range map[string]string{"2708": "2.7", "21003": "2.10"} {
		t.Setenv("VPPS_FAKE_NCCL", code)
		_, err = NCCLID()
		refused(err, "it is NCCL "+version+", the oldest that is of use is 2.11")
	}
	t.Setenv("VPPS_FAKE_NCCL", "")
	t.Setenv("VPPS_FAKE_NCCL_FAIL", "ncclGetUniqueId:2")
	_, err = NCCLID()
	refused(err, "make the id of a group with NCCL: as the fake NCCL was told (2)")
	t.Setenv("VPPS_FAKE_NCCL_FAIL", "ncclCommInitRank:3")
	_, err = NewNCCL(one)
	refused(err, "join a group of 1 GPUs with NCCL: as the fake NCCL was told (3)")
	t.Setenv("VPPS_FAKE_NCCL_FAIL", "")
	one.Device = 7
	_, err = NewNCCL(one)
	refused(err, "open GPU 7: there are 2")
	for _, bad := range []NCCL{
		{Size: 0, ID: id, Patience: long}, {Size: mostRanks + 1, ID: id, Patience: long}, {Size: 2, Rank: 2, ID: id, Patience: long},
		{Size: 2, Rank: -1, ID: id, Patience: long}, {Size: 2, ID: id[1:], Patience: long}, {Size: 2, ID: id},
	} {
		_, err = NewNCCL(bad)
		require.ErrorIs(t, err, ErrArgument)
	}
	one.Device, one.Size, one.Patience = 0, 2, 50*time.Millisecond
	_, err = NewNCCL(one)
	require.ErrorIs(t, err, ErrAbsent)
	require.ErrorContains(t, err, "rank 0 of 2: not all ranks have joined the group by NCCL within 300ms")
}

// Whatever NCCL or the device says ends the group on this rank, and the others are not left waiting.
func TestErrorsOfNCCL(t *testing.T) {
	needsStandins(t)
	for fault, words := range map[string]string{
		"ncclAllGather:1":            "gather with NCCL: as the fake NCCL was told (1)",
		"ncclAllReduce:2":            "sum with NCCL: as the fake NCCL was told (2)",
		"ncclGroupStart:3":           "sum with NCCL: as the fake NCCL was told (3)",
		"ncclGroupEnd:3":             "sum with NCCL: as the fake NCCL was told (3)",
		"ncclBroadcast:5":            "broadcast with NCCL: as the fake NCCL was told (5)",
		"ncclRedOpCreatePreMulSum:4": "sum with NCCL: as the fake NCCL was told (4)",
	} {
		ranks := newNCCL(t, 2, 100*time.Millisecond)
		t.Setenv("VPPS_FAKE_NCCL_FAIL", fault)
		for _, err := range each(ranks, func(c Communicator) error {
			half := float32(0.5)
			at := uint64(onDevice(t, c, []float32{1}))
			_, gathered := c.AllGather(make([]uint32, 3*recordWords))
			return errors.Join(gathered, c.Broadcast([]float32{1}, 0), sumBF16(c, []float32{1}), c.AllReduce([]float32{1}), sumOf(c, []gpu.Range{{From: at, To: at, N: 1}}, &half))
		}) {
			require.Error(t, err, fault)
			if errors.Is(err, ErrAborted) {
				require.ErrorContains(t, err, words, fault)
			} else {
				require.ErrorIs(t, err, ErrAbsent, fault)
			}
		}
		t.Setenv("VPPS_FAKE_NCCL_FAIL", "")
	}
}

// A sum whose round shows that another rank has aborted, or is in another call, or shows nothing in time, is ended: the other
// does not come to it.
func TestASumThatTheOtherRankIsNotIn(t *testing.T) {
	for kind, other := range map[error]func(c Communicator) error{
		ErrAborted: func(c Communicator) error { c.Abort(errors.New("out of paper")); return c.Barrier() },
		ErrDiffers: Communicator.Barrier,
		ErrAbsent:  func(Communicator) error { return ErrAbsent }, // never comes
	} {
		ranks := newNCCL(t, 2, 500*time.Millisecond)
		for _, err := range each(ranks, func(c Communicator) error {
			if c.Rank() == 1 {
				return other(c)
			}
			at := uint64(onDevice(t, c, []float32{1, 2}))
			return sumOf(c, []gpu.Range{{From: at, To: at + 4, N: 1}}, nil)
		}) {
			require.ErrorIs(t, err, kind)
		}
	}
}

// A call that rank 1 is in when another goroutine aborts ends with the reason, though rank 0 is not there.
func TestAbortOfACallThatWaits(t *testing.T) {
	ranks := newNCCL(t, 2, 300*time.Millisecond)
	go func() {
		time.Sleep(20 * time.Millisecond)
		ranks[1].Abort(errors.New("out of paper"))
	}()
	require.EqualError(t, ranks[1].Barrier(), "rank 1 has aborted: out of paper")
	err := ranks[0].Barrier()
	if err == nil { // rank 1's part was on its way: the next call tells
		err = ranks[0].Barrier()
	}
	require.True(t, errors.Is(err, ErrAbsent) || errors.Is(err, ErrAborted), err)
	require.ErrorIs(t, ranks[0].Broadcast(nil, 2), ErrArgument)
}

// The last user's Close frees everything; who calls later is told.
func TestClosedWhenNobodyUsesIt(t *testing.T) {
	ranks := newNCCL(t, 1, long)
	c := ranks[0].(*nccl)
	c.Hold()
	c.Close()
	require.NoError(t, c.Barrier())
	c.Close()
	require.ErrorContains(t, c.Barrier(), "the communicator was closed")
	c.Abort(errors.New("too late"))
	require.Equal(t, 1, c.Size())
	c.users.Store(2) // for the end of the test
}

// What calls of one and two ranks take: a round, and sums of so many floats.
func BenchmarkNCCL(b *testing.B) {
	for _, size := range []int{1, 2} {
		for _, n := range []int{0, 1 << 10, 1 << 17, 1 << 20, 1 << 23, 1 << 25} {
			for _, half := range []bool{false, true} {
				b.Run(fmt.Sprintf("ranks=%d/floats=%d/bf16=%v", size, n, half), func(b *testing.B) { benchmarkSums(b, size, n, half) })
			}
		}
	}
}

func benchmarkSums(b *testing.B, size, n int, half bool) {
	ranks := newNCCLFor(b, size)
	ranges := make([][]gpu.Range, size)
	for _, c := range ranks {
		at := uint64(onDevice(b, c, make([]float32, 2*n+2)))
		ranges[c.Rank()] = []gpu.Range{{From: at, To: at + 4*uint64(n), N: uint64(n)}}
	}
	do := func(c Communicator) error {
		mine := ranges[c.Rank()]
		switch {
		case n == 0:
			return c.Barrier()
		case half:
			_, err := c.(OnDevice).SumBF16(mine[0].From, n, nil)
			return err
		}
		return sumOf(c, mine, nil)
	}
	require.NoError(b, errors.Join(each(ranks, do)...))
	b.ResetTimer()
	require.NoError(b, errors.Join(each(ranks, func(c Communicator) error {
		for range b.N {
			if err := do(c); err != nil {
				return err
			}
		}
		return nil
	})...))
}
