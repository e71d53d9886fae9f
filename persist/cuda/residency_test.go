package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

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

func (*assembler) Version() (int, int) { return 12, 8 } // without quick kernels
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

// takes is a compiler whose kernels have so many registers and bytes of stack.
func takes(registers, stack uint32) *assembler {
	return &assembler{fits: func(string) (uint32, uint32) { return registers, stack }}
}

// A plan is chosen before its kernel is compiled, and only that is. What spills is taken, and the report says so.
func TestOneKernelIsCompiled(t *testing.T) {
	for _, stack := range []uint32{0, 48} {
		c := takes(255, stack)
		e := onFakeGPU(t, c, 1)
		p, err := e.Plan(wide(32, 128))
		require.NoError(t, err)
		require.Zero(t, c.calls)
		require.NoError(t, e.SetPlan(p))
		require.Equal(t, 1, c.calls)
		require.Equal(t, []int{4, 0, 20, jit.SetAside}, []int{p.RowsPerWarp, p.Outside(), p.Used, p.SetAside})
		require.Contains(t, p.Report(), fmt.Sprintf("255 registers a thread of the compiled kernel, %d bytes of stack", stack))
	}
}

// A pinned plan is taken even if the sum of registers says that it does not fit.
func TestAPinnedPlanIsTaken(t *testing.T) {
	e := onFakeGPU(t, takes(255, 16), 1)
	e.settings.RowsPerWarp = 2
	p, err := e.Plan(wide(32, 1024))
	require.NoError(t, err)
	require.NoError(t, e.SetPlan(p))
	require.Equal(t, 2, p.RowsPerWarp)
	require.Zero(t, p.Outside())
	require.Greater(t, p.Used+p.Staging+p.SetAside, 255)
}
