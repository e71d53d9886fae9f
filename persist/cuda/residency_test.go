package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/mock/gomock"
	"github.com/stretchr/testify/require"

	"libvpps/gpu"
	"libvpps/gpu/mocks"
	"libvpps/jit"
	"libvpps/persist/plan"
)

// assembler is a compiler whose machine code says only how many registers and bytes of stack a
// thread needs, which fits decides from the source.
type assembler struct {
	fits  func(src string) (registers, stack uint32)
	calls int
}

func (*assembler) Version() (int, int) { return 13, 0 }
func (*assembler) Archs() []int        { return []int{90} }
func (a *assembler) Compile(_, src string, _ []string) ([]byte, string, error) {
	a.calls++
	if !strings.Contains(src, "vpps_run") {
		return nil, "no kernel", errors.New("not the kernel's source")
	}
	return image(a.fits(src)), "", nil
}

// image is the smallest ELF file that package cubin reads: one kernel's resources.
func image(registers, stack uint32) []byte {
	const names = "\x00.text.vpps_run\x00.nv.info\x00.symtab\x00.strtab\x00vpps_run\x00"
	at := func(name string) uint32 { return uint32(strings.Index(names, "\x00"+name+"\x00") + 1) }
	symbols := make([]byte, 48)
	binary.LittleEndian.PutUint32(symbols[24:], at("vpps_run"))
	var info bytes.Buffer
	for _, r := range [][2]uint32{{0x2f, registers}, {0x11, stack}} {
		binary.Write(&info, binary.LittleEndian, []uint32{4 | r[0]<<8 | 8<<16, 1, r[1]})
	}
	type section struct {
		Name, Type               uint32
		Flags, Addr, Offset, Len uint64
		Link, Info               uint32
		Align, Entry             uint64
	}
	contents := [][]byte{nil, nil, info.Bytes(), symbols, []byte(names)}
	headers := []section{{}, {Name: at(".text.vpps_run"), Type: 1}, {Name: at(".nv.info"), Type: 1},
		{Name: at(".symtab"), Type: 2, Link: 4, Entry: 24}, {Name: at(".strtab"), Type: 3}}
	var body bytes.Buffer
	for i, c := range contents {
		headers[i].Offset, headers[i].Len = uint64(64+body.Len()), uint64(len(c))
		body.Write(c)
	}
	var file bytes.Buffer
	file.WriteString("\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9))
	binary.Write(&file, binary.LittleEndian, struct {
		Type, Machine                                   uint16
		Version                                         uint32
		Entry, Program, Sections                        uint64
		Flags                                           uint32
		Size, ProgramSize, Programs, Header, Count, Str uint16
	}{2, 190, 1, 0, 0, uint64(64 + body.Len()), 0, 64, 0, 0, 64, uint16(len(headers)), 4})
	file.Write(body.Bytes())
	binary.Write(&file, binary.LittleEndian, headers)
	return file.Bytes()
}

// onFakeGPU is an executor on a device that takes any kernel.
func onFakeGPU(t *testing.T, c gpu.Compiler, sms int) *Executor {
	t.Helper()
	ctrl := gomock.NewController(t)
	dev, module, function := mocks.NewMockDevice(ctrl), mocks.NewMockModule(ctrl), mocks.NewMockFunction(ctrl)
	dev.EXPECT().Info().Return(gpu.Info{Name: "fake", Major: 9, SMs: sms, RegsPerSM: 65536, SharedPerBlockOptin: 227 << 10, Cooperative: true}).AnyTimes()
	dev.EXPECT().Load(gomock.Any()).Return(module, nil).AnyTimes()
	module.EXPECT().Function(jit.Entry).Return(function, nil).AnyTimes()
	function.EXPECT().SetMaxShared(gomock.Any()).Return(nil).AnyTimes()
	function.EXPECT().MaxBlocksPerSM(gomock.Any(), gomock.Any()).Return(2, nil).AnyTimes()
	return assembled(dev, c, nil, plan.Settings{}, "")
}

func wide(rows, cols int) []plan.Matrix {
	return []plan.Matrix{{Name: "W", Rows: rows, Cols: cols}, {Param: 1, Name: "V", Rows: 8, Cols: 32, Offset: uint32(rows * cols)}}
}

// spillsAt is a compiler by which kernels spill that have one of these matrix routines. The interpreter
// alone takes 64 registers, a kernel with a matrix 200.
func spillsAt(spilling ...string) *assembler {
	return &assembler{fits: func(src string) (uint32, uint32) {
		for _, s := range spilling {
			if strings.Contains(src, "load_rows<"+s) {
				return 255, 48
			}
		}
		if !strings.Contains(src, ">(r0,") {
			return 64, 0
		}
		return 200, 0
	}}
}

func TestAPlanThatSpillsGivesWayToTheNextBest(t *testing.T) {
	cases := []struct {
		name        string
		compiler    *assembler
		rpw, out    int
		used, calls int
		refused     []string
	}{
		{"the best", spillsAt(), 4, 0, 20, 2, nil},
		{"four rows spill", spillsAt("4, 128>"), 2, 0, 18, 3, []string{"4 rows a warp, 20 registers a thread for weights: its kernel needs 48 bytes of stack a thread"}},
		{"only a matrix outside the registers helps", spillsAt("4, 128>", "2, 128>", "1, 128>"), 1, 1, 1, 6, []string{"4 rows", "2 rows", "1 rows a warp, 17 registers", "1 rows"}},
		{"nothing resident", spillsAt("4, 128>", "2, 128>", "1,"), 1, 2, 0, 7, []string{"4 rows", "2 rows", "1 rows a warp, 17 registers", "1 rows", "1 rows a warp, 1 registers"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			e := onFakeGPU(t, c.compiler, 1)
			p, err := e.Plan(wide(32, 128))
			require.NoError(t, err)
			require.NoError(t, e.SetPlan(p))
			require.Equal(t, []int{c.rpw, c.out, c.used}, []int{p.RowsPerWarp, p.Outside(), p.Used})
			require.Equal(t, c.calls, c.compiler.calls, "compilations, that of the interpreter included")
			require.Len(t, p.Refused, len(c.refused))
			for i, want := range c.refused {
				require.Contains(t, p.Refused[i], want)
				require.Contains(t, p.Report(), "not taken: "+want)
			}
			require.Contains(t, p.Report(), "registers a thread of the compiled kernel")
		})
	}
}

// The registers of the interpreter come from its machine code. Four are spare, and Gemm's results count like a gradient.
func TestWhatIsSetAsideIsMeasured(t *testing.T) {
	for _, interpreter := range []uint32{60, 90} {
		e := onFakeGPU(t, &assembler{fits: func(src string) (uint32, uint32) {
			if strings.Contains(src, ">(r0,") {
				return 250, 0
			}
			return interpreter, 0
		}}, 132)
		p, err := e.Plan(wide(1024, 1024))
		require.NoError(t, err)
		aside := interpreter + 4 - plan.GemmStaging
		require.EqualValues(t, aside, p.SetAside)
		require.Contains(t, p.Report(), fmt.Sprintf("%d for the interpreter, of 255", aside))
	}
}

// The interpreter alone may spill what its few registers do not hold, but a program without parameters has no weights to
// take away: it runs. What a plan sets aside counts the stack as registers.
func TestAKernelWithoutMatricesMaySpill(t *testing.T) {
	e := onFakeGPU(t, &assembler{fits: func(src string) (uint32, uint32) {
		if strings.Contains(src, ">(r0,") {
			return 200, 0
		}
		return 112, 8
	}}, 4)
	p, err := e.Plan(nil)
	require.NoError(t, err)
	require.NoError(t, e.SetPlan(p))
	p, err = e.Plan(wide(64, 64))
	require.NoError(t, err)
	require.EqualValues(t, 112+2+4-plan.GemmStaging, p.SetAside)
}

// slowly is a compiler that takes its time for the interpreter, and whose kernels with matrices wait for that to have begun.
type slowly struct {
	*assembler
	mu      sync.Mutex
	sources []string
	overlap bool // a kernel was compiled while the interpreter was
	busy    bool
}

func (s *slowly) Compile(name, src string, options []string) ([]byte, string, error) {
	alone := !strings.Contains(src, ">(r0,")
	s.mu.Lock()
	s.sources = append(s.sources, src)
	s.busy, s.overlap = alone || s.busy, s.overlap || !alone && s.busy
	image, log, err := s.assembler.Compile(name, src, options)
	s.mu.Unlock()
	if alone {
		time.Sleep(4 * patience)
		s.mu.Lock()
		s.busy = false
		s.mu.Unlock()
	}
	return image, log, err
}

// While the compiler measures the interpreter, it makes the kernel of the plan that is likely; another one is made if the
// interpreter takes more than usual.
func TestTheFirstKernelIsCompiledAhead(t *testing.T) {
	for _, c := range []struct {
		name        string
		interpreter uint32
		kernels     int
	}{{"as usual", jit.UsualSetAside - 4 + plan.GemmStaging, 2}, {"more than usual", 190, 3}} {
		t.Run(c.name, func(t *testing.T) {
			compiler := &slowly{assembler: &assembler{fits: func(src string) (uint32, uint32) {
				if strings.Contains(src, ">(r0,") {
					return 250, 0
				}
				return c.interpreter, 0
			}}}
			e := onFakeGPU(t, compiler, 132)
			p, err := e.Plan(wide(1024, 1024))
			require.NoError(t, err)
			require.NoError(t, e.SetPlan(p))
			require.True(t, compiler.overlap)
			require.Len(t, compiler.sources, c.kernels)
			require.EqualValues(t, c.interpreter+4-plan.GemmStaging, p.SetAside)
			source, err := jit.Source(p, jit.Options{})
			require.NoError(t, err)
			require.Contains(t, compiler.sources, source)
			require.Nil(t, e.ahead)
		})
	}
}

// What is pinned is not replaced by something else, and is tried even if the sum of registers says that
// it does not fit.
func TestAPinnedPlanThatSpillsIsRefused(t *testing.T) {
	stack, registers := uint32(16), uint32(255)
	e := onFakeGPU(t, &assembler{fits: func(src string) (uint32, uint32) {
		if !strings.Contains(src, ">(r0,") {
			return 120, 0
		}
		return registers, stack
	}}, 1)
	e.settings.RowsPerWarp = 2
	m := wide(32, 1024)
	_, err := e.Plan(m)
	require.ErrorContains(t, err, "2 rows a warp, as VPPS_PLAN pins, are refused: 2 rows a warp, 130 registers a thread for weights: its kernel needs 16 bytes of stack a thread")
	stack, registers = 0, 300
	_, err = e.Plan(m)
	require.ErrorContains(t, err, "its kernel needs 300 registers a thread, the device has 255")
	registers = 255
	p, err := e.Plan(m)
	require.NoError(t, err)
	require.NoError(t, e.SetPlan(p))
	require.Equal(t, 2, p.RowsPerWarp)
	require.Zero(t, p.Outside())
}

// With the real compiler: five rows of 800 columns take 125 registers, and their gradient as many.
func TestAKernelThatNVRTCSpillsIsNotTaken(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: compiles three kernels")
	}
	c, err := gpu.OpenCompiler(0, 90)
	if err != nil {
		t.Skip("skipped: needs NVRTC that knows sm_90")
	}
	m := []plan.Matrix{{Name: "W", Rows: 40, Cols: 800}}
	e := onFakeGPU(t, c, 2)
	e.settings.RowsPerWarp = 5
	_, err = e.Plan(m)
	require.ErrorContains(t, err, "125 registers a thread for weights: its kernel needs ")
	t.Log(err)
	e.settings.RowsPerWarp = 0
	p, err := e.Plan(m)
	require.NoError(t, err)
	require.NoError(t, e.SetPlan(p))
	require.Less(t, p.RowsPerWarp, 5)
	require.Zero(t, p.Outside())
	require.Contains(t, p.Note, " 0 bytes of stack")
	t.Log(p.Report())
}
