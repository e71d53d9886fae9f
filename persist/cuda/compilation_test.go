package cuda

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/golang/mock/gomock"
	"github.com/stretchr/testify/require"

	"libvpps/gpu/mocks"
	"libvpps/jit"
	"libvpps/log"
	"libvpps/persist/plan"
)

// slowly is a compiler of kernels of 100 registers that are there when finish is closed, and of quick ones of 200 at once.
type slowly struct {
	*assembler
	mu           sync.Mutex
	minor        int
	finish       chan struct{}
	quick        int // compilations
	err, quickly error
}

func (s *slowly) Version() (int, int) { return 12, s.minor }

func (s *slowly) Compile(_, _ string, options []string) ([]byte, string, error) {
	if slices.Contains(options, "--Ofast-compile=min") {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.quick++
		return image(200, 8), "", s.quickly
	}
	<-s.finish
	return image(100, 0), "", s.err
}

// slowlyCompiled is an executor of a plan without matrices by a slow compiler. Its quick kernel has the first function, and the
// other one the second.
func slowlyCompiled(t *testing.T, c *slowly) (e *Executor, functions [2]*mocks.MockFunction, modules [2]*mocks.MockModule, launch func(batch uint32, f *mocks.MockFunction)) {
	t.Helper()
	ctrl := gomock.NewController(t)
	d := mockDevice(t, 2)
	d.EXPECT().AllocHost(gomock.Any()).AnyTimes().Return(hostBuffer(1<<20), nil)
	d.EXPECT().FreeHost(gomock.Any()).AnyTimes()
	d.EXPECT().Alloc(gomock.Any()).AnyTimes()
	d.EXPECT().Memset32(gomock.Any(), gomock.Any(), gomock.Any()).AnyTimes()
	d.EXPECT().Synchronize().AnyTimes()
	d.EXPECT().Free(gomock.Any()).AnyTimes()
	d.EXPECT().CopyAhead(gomock.Any(), gomock.Any(), gomock.Any()).AnyTimes()
	for i, registers := range []uint32{200, 100} {
		modules[i], functions[i] = mocks.NewMockModule(ctrl), mocks.NewMockFunction(ctrl)
		d.EXPECT().Load(image(registers, 8*uint32(1-i))).Return(modules[i], nil).MaxTimes(1)
		modules[i].EXPECT().Function(jit.Entry).Return(functions[i], nil).AnyTimes()
		functions[i].EXPECT().SetMaxShared(gomock.Any()).AnyTimes()
		functions[i].EXPECT().MaxBlocksPerSM(jit.Threads, gomock.Any()).Return(1, nil).AnyTimes()
	}
	e = assembled(d, c, &jit.Cache{Dir: t.TempDir()}, plan.Settings{}, "")
	for i := range e.staging {
		done := mocks.NewMockEvent(ctrl)
		done.EXPECT().Record().AnyTimes()
		done.EXPECT().Close().AnyTimes()
		e.staging[i].done = done
	}
	return e, functions, modules, func(batch uint32, f *mocks.MockFunction) {
		t.Helper()
		d.EXPECT().Launch(f, gomock.Any(), jit.Threads, gomock.Any(), gomock.Any(), gomock.Any())
		require.NoError(t, e.Launch(emptyScript(), batch))
	}
}

// told has the lines of the log from now on.
func told(t *testing.T) *[]string {
	var lines []string
	log.Set(log.Info, func(_ log.Level, line string) { lines = append(lines, line) })
	t.Cleanup(func() { log.Set(log.Off, nil) })
	return &lines
}

// Launches run a quick kernel until the other one is compiled. What was launched before may still be on its way then, so the
// quick kernel stays on the device until the executor gives it back.
func TestTheFirstLaunchesRunAQuickKernel(t *testing.T) {
	c := &slowly{minor: 9, finish: make(chan struct{})}
	e, functions, modules, launch := slowlyCompiled(t, c)
	p, err := e.Plan(nil)
	require.NoError(t, err)
	require.NoError(t, e.SetPlan(p))
	require.Contains(t, p.Note, "the first kernel, until a better one is compiled: 200 registers a thread of the compiled kernel, 8 bytes of stack")
	launch(1, functions[0])
	launch(2, functions[0])
	better := e.better
	close(c.finish)
	<-better.done
	launch(3, functions[1])
	launch(4, functions[1])
	require.Nil(t, e.better)
	for _, m := range modules {
		m.EXPECT().Unload()
	}
	e.release()

	// Now the cache has it.
	patient(t)
	again, functions, _, launch := slowlyCompiled(t, c)
	again.cache = e.cache
	require.NoError(t, again.SetPlan(p))
	launch(1, functions[1])
	require.Equal(t, 1, c.quick)
}

// If the better kernel does not compile, the quick one stays.
func TestAQuickKernelStays(t *testing.T) {
	lines := told(t)
	c := &slowly{minor: 9, finish: make(chan struct{}), err: errNo}
	e, functions, _, launch := slowlyCompiled(t, c)
	p, err := e.Plan(nil)
	require.NoError(t, err)
	require.NoError(t, e.SetPlan(p))
	better := e.better
	close(c.finish)
	<-better.done
	launch(1, functions[0])
	require.Nil(t, e.better)
	require.Contains(t, (*lines)[len(*lines)-1], "fallback: the quick kernel stays: the kernel does not compile: no")
}

// A compiler that has no quick kernel, or fails at it, and a profile wait for the kernel that stays.
func TestNoQuickKernel(t *testing.T) {
	for name, c := range map[string]struct {
		compiler *slowly
		clocks   bool
		quick    int
	}{"an older compiler": {&slowly{minor: 8}, false, 0}, "it fails": {&slowly{minor: 9, quickly: errNo}, false, 1}, "a profile": {&slowly{minor: 9}, true, 0}} {
		t.Run(name, func(t *testing.T) {
			c.compiler.finish = make(chan struct{})
			e, functions, _, launch := slowlyCompiled(t, c.compiler)
			e.options.Clocks = c.clocks
			p, err := e.Plan(nil)
			require.NoError(t, err)
			set := make(chan error)
			go func() { set <- e.SetPlan(p) }()
			select {
			case <-set:
				t.Fatal("there is no kernel yet")
			case <-time.After(4 * Patience):
			}
			close(c.compiler.finish)
			require.NoError(t, <-set)
			launch(1, functions[1])
			require.Equal(t, c.quick, c.compiler.quick)
		})
	}
}
