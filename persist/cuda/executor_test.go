package cuda

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/golang/mock/gomock"
	"github.com/stretchr/testify/require"

	"libvpps/gpu"
	"libvpps/gpu/mocks"
	"libvpps/jit"
	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// What the executor asks of a device, call by call. How the engine takes failures is in
// persist/standin_test.go.

var errNo = errors.New("no")

func hostBuffer(bytes int) gpu.HostBuffer {
	mem := make([]uint64, (bytes+7)/8)
	return gpu.HostBuffer{Mem: unsafe.Pointer(&mem[0]), Dev: 0x1000, Bytes: bytes}
}

// mockDevice is a device of so many SMs that can be opened.
func mockDevice(t *testing.T, sms int) *mocks.MockDevice {
	t.Helper()
	d := mocks.NewMockDevice(gomock.NewController(t))
	d.EXPECT().Info().AnyTimes().Return(gpu.Info{Name: "mock", Major: 9, SMs: sms, RegsPerSM: 65536, SharedPerBlockOptin: 232448, Cooperative: true})
	return d
}

// patient has every plan have one kernel until the test ends.
func patient(t *testing.T) {
	was := Patience
	Patience = time.Minute
	t.Cleanup(func() { Patience = was })
}

// opened is an executor on a mock, with the events of its slots in turn, and a plan of two
// processors whose kernel is function.
func opened(t *testing.T) (e *Executor, d *mocks.MockDevice, events [Slots]*mocks.MockEvent, function *mocks.MockFunction) {
	t.Helper()
	t.Setenv("VPPS_CACHE_DIR", t.TempDir())
	patient(t)
	ctrl := gomock.NewController(t)
	d = mockDevice(t, 2)
	d.EXPECT().AllocHost(gomock.Any()).AnyTimes().DoAndReturn(func(n int) (gpu.HostBuffer, error) { return hostBuffer(n), nil })
	d.EXPECT().Alloc(gomock.Any()).AnyTimes().Return(gpu.Ptr(0x2000), nil)
	d.EXPECT().Memset32(gomock.Any(), gomock.Any(), gomock.Any()).AnyTimes()
	d.EXPECT().Synchronize().AnyTimes()
	d.EXPECT().FreeHost(gomock.Any()).AnyTimes()
	d.EXPECT().Free(gomock.Any()).AnyTimes()
	for i := range events {
		events[i] = mocks.NewMockEvent(ctrl)
		d.EXPECT().NewEvent().Return(events[i], nil)
	}
	e, err := New(d, mocks.NVRTC(t), 5, plan.Settings{}, "0.1.0")
	require.NoError(t, err)

	module := mocks.NewMockModule(ctrl)
	function = mocks.NewMockFunction(ctrl)
	d.EXPECT().Load(gomock.Any()).Return(module, nil)
	module.EXPECT().Function(jit.Entry).Return(function, nil)
	function.EXPECT().SetMaxShared(gomock.Any())
	function.EXPECT().MaxBlocksPerSM(jit.Threads, gomock.Any()).Return(1, nil)
	p, err := plan.Sliced(nil, 2)
	require.NoError(t, err)
	require.NoError(t, e.SetPlan(p))
	return e, d, events, function
}

func emptyScript() *isa.Script { return isa.NewAssembler(2).Script() }

// Every script has a slot: it is copied, launched and marked, in this order. The fifth waits for the
// first to pass before it writes into the slot's memory, the sixth for the second. Nothing else is
// asked of the device.
func TestSlotsAreWrittenWhenTheLaunchBeforeHasPassed(t *testing.T) {
	e, d, events, function := opened(t)
	s := emptyScript()
	bytes := 4 * int(s.Words[isa.HeadDevice])
	var calls []*gomock.Call
	for batch := range 2*Slots + 1 {
		slot := batch % Slots
		if batch >= Slots {
			calls = append(calls, events[slot].EXPECT().Wait())
		}
		calls = append(calls,
			d.EXPECT().CopyAhead(gpu.Ptr(0x2000), gomock.Any(), bytes),
			d.EXPECT().Launch(function, 2, jit.Threads, gomock.Any(), gomock.Any(), []uint32{0}),
			events[slot].EXPECT().Record())
	}
	gomock.InOrder(calls...)
	for batch := range 2*Slots + 1 {
		require.NoError(t, e.Launch(s, uint32(batch+1)))
	}
}

// A slot has no space before its first script, which is copied; the next that is not longer is written into the slot.
func TestScriptsAreWrittenIntoTheirSpace(t *testing.T) {
	e, d, events, function := opened(t)
	d.EXPECT().CopyAhead(gomock.Any(), gomock.Any(), gomock.Any()).Times(Slots + 1)
	d.EXPECT().Launch(function, gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any()).Times(Slots + 1)
	for _, event := range events {
		event.EXPECT().Record().AnyTimes()
		event.EXPECT().Wait().AnyTimes()
	}
	for batch := range uint32(Slots) {
		require.Empty(t, e.Space(batch+1), "of a slot that nothing was launched from")
		require.NoError(t, e.Launch(emptyScript(), batch+1))
	}
	space := e.Space(Slots + 1)
	empty := emptyScript()
	require.GreaterOrEqual(t, cap(space), len(empty.Words))
	require.NoError(t, e.Launch(&isa.Script{Words: append(space, empty.Words...)}, Slots+1))
	require.Equal(t, unsafe.Pointer(&space[:1][0]), e.staging[0].host.Mem, "the slot has other memory than it had")
}

// Waiting for a batch waits for its mark only, once; the slot is free then.
func TestWaitingForABatchWaitsForItsMark(t *testing.T) {
	e, d, events, function := opened(t)
	d.EXPECT().CopyAhead(gomock.Any(), gomock.Any(), gomock.Any()).Times(Slots + 1)
	d.EXPECT().Launch(function, gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any()).Times(Slots + 1)
	for _, event := range append(events[:], events[0]) {
		event.EXPECT().Record()
	}
	for batch := range Slots {
		require.NoError(t, e.Launch(emptyScript(), uint32(batch+1)))
	}
	events[0].EXPECT().Wait().Times(1)
	require.NoError(t, e.WaitBatch(1))
	require.NoError(t, e.WaitBatch(1))
	require.NoError(t, e.Launch(emptyScript(), Slots+1))
}

// A word is foretold as soon as it is there, and without it when the launch is over.
func TestForetellWaitsForItsWordOrTheEnd(t *testing.T) {
	e, d, events, function := opened(t)
	d.EXPECT().CopyAhead(gomock.Any(), gomock.Any(), gomock.Any())
	d.EXPECT().Launch(function, gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any())
	events[0].EXPECT().Record()
	unwritten := []float32{math.Float32frombits(isa.Sentinel)}
	require.NoError(t, e.Write(isa.SegResult, 8, unwritten))
	require.NoError(t, e.Launch(emptyScript(), 1))

	events[0].EXPECT().Done().DoAndReturn(func() (bool, error) { return false, e.Write(isa.SegResult, 8, []float32{2}) })
	loss, known, err := e.Foretell(8, 1)
	require.NoError(t, err)
	require.True(t, known)
	require.Equal(t, float32(2), loss)

	require.NoError(t, e.Write(isa.SegResult, 8, unwritten))
	events[0].EXPECT().Done().Return(false, nil)
	events[0].EXPECT().Done().Return(true, nil)
	_, known, err = e.Foretell(8, 1)
	require.NoError(t, err)
	require.False(t, known)

	events[0].EXPECT().Done().Return(false, errors.New("lost"))
	_, known, err = e.Foretell(8, 1)
	require.False(t, known)
	require.EqualError(t, err, "lost")
}

// A failure at any step of a launch is the launch's, and what comes behind the step is left out.
func TestAFailureOfALaunchIsTold(t *testing.T) {
	for _, step := range []string{"copy", "launch", "record", "wait"} {
		t.Run(step, func(t *testing.T) {
			e, d, events, _ := opened(t)
			fails := func(at string) error {
				if at == step {
					return errNo
				}
				return nil
			}
			d.EXPECT().CopyAhead(gomock.Any(), gomock.Any(), gomock.Any()).Return(fails("copy"))
			if step != "copy" {
				d.EXPECT().Launch(gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any(), gomock.Any()).Return(fails("launch"))
			}
			if step == "record" || step == "wait" {
				events[0].EXPECT().Record().Return(fails("record"))
			}
			err := e.Launch(emptyScript(), 1)
			if step == "record" { // its end cannot be noted: it was waited for
				require.NoError(t, err)
				return
			}
			if step == "wait" {
				require.NoError(t, err)
				events[0].EXPECT().Wait().Return(errNo)
				err = e.WaitBatch(1)
			}
			require.ErrorIs(t, err, errNo)
		})
	}
}

// Whatever fails while it opens, an executor gives back what it has, and leaves the device open.
func TestAnExecutorThatCannotOpenLeavesNothing(t *testing.T) {
	for fails := range 6 {
		t.Run(fmt.Sprint("step ", fails), func(t *testing.T) {
			d := mockDevice(t, 2)
			step, held := 0, 0
			next := func() error {
				if step++; step > fails {
					return errNo
				}
				return nil
			}
			d.EXPECT().AllocHost(gomock.Any()).AnyTimes().DoAndReturn(func(n int) (gpu.HostBuffer, error) { return hostBuffer(n), next() })
			d.EXPECT().Alloc(gomock.Any()).AnyTimes().DoAndReturn(func(int64) (gpu.Ptr, error) {
				if err := next(); err != nil {
					return 0, err
				}
				held++
				return 0x2000, nil
			})
			d.EXPECT().Memset32(gomock.Any(), gomock.Any(), gomock.Any()).AnyTimes().DoAndReturn(func(gpu.Ptr, uint32, int64) error { return next() })
			d.EXPECT().NewEvent().AnyTimes().DoAndReturn(func() (gpu.Event, error) {
				if err := next(); err != nil {
					return nil, err
				}
				held++
				e := mocks.NewMockEvent(gomock.NewController(t))
				e.EXPECT().Close().DoAndReturn(func() error { held--; return nil })
				return e, nil
			})
			d.EXPECT().Free(gomock.Any()).AnyTimes().DoAndReturn(func(p gpu.Ptr) error {
				if p != 0 {
					held--
				}
				return nil
			})
			d.EXPECT().Synchronize().AnyTimes()
			_, err := New(d, mocks.NewMockCompiler(gomock.NewController(t)), 5, plan.Settings{}, "0.1.0")
			require.ErrorIs(t, err, errNo)
			require.Zero(t, held)
		})
	}
}

func TestADeviceWithoutCooperativeLaunchesIsRefused(t *testing.T) {
	d := mocks.NewMockDevice(gomock.NewController(t))
	d.EXPECT().Info().AnyTimes().Return(gpu.Info{Name: "an old one"})
	_, err := New(d, mocks.NewMockCompiler(gomock.NewController(t)), 5, plan.Settings{}, "0.1.0")
	require.ErrorContains(t, err, "an old one cannot launch cooperative grids")
}

// A segment that does not get more memory keeps what it has.
func TestASegmentThatCannotGrowKeepsItsContents(t *testing.T) {
	d := mockDevice(t, 2)
	e := assembled(d, nil, nil, plan.Settings{}, "")
	e.segments[isa.SegParam] = segment{at: 0x5000, words: 16}
	full := &gpu.Error{Doing: "allocate", Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY"}
	d.EXPECT().Alloc(gomock.Any()).Times(2).Return(gpu.Ptr(0), full) // with room to spare, then without
	d.EXPECT().MemInfo().Return(int64(100), int64(1000), nil)
	err := e.Grow(isa.SegParam, 1000)
	require.ErrorIs(t, err, full)
	require.ErrorContains(t, err, "4000 bytes needed, 100 of 1000 free")
	require.Equal(t, segment{at: 0x5000, words: 16}, e.segments[isa.SegParam])

	// The copy fails: the new memory is given back.
	d.EXPECT().Alloc(gomock.Any()).Return(gpu.Ptr(0x9000), nil)
	d.EXPECT().CopyOnDevice(gpu.Ptr(0x9000), gpu.Ptr(0x5000), int64(64)).Return(errNo)
	d.EXPECT().Free(gpu.Ptr(0x9000))
	require.ErrorIs(t, e.Grow(isa.SegParam, 1000), errNo)
	require.Equal(t, segment{at: 0x5000, words: 16}, e.segments[isa.SegParam])
}

// An error of the compiler has the first lines of its log.
func TestWhatTheCompilerSaysIsTold(t *testing.T) {
	patient(t)
	c := mocks.NewMockCompiler(gomock.NewController(t))
	c.EXPECT().Archs().AnyTimes().Return([]int{90})
	c.EXPECT().Version().AnyTimes().Return(12, 9)
	c.EXPECT().Compile(gomock.Any(), gomock.Any(), gomock.Any()).Return(nil, "vpps.cu(3): error: oh\n1 error", errNo)
	e := assembled(mockDevice(t, 2), c, &jit.Cache{Dir: t.TempDir()}, plan.Settings{}, "")
	p, err := e.Plan(nil)
	require.NoError(t, err)
	err = e.SetPlan(p)
	require.ErrorIs(t, err, errNo)
	require.ErrorContains(t, err, "vpps.cu(3): error: oh | 1 error")
}
