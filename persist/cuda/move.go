package cuda

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"libvpps/gpu"
	"libvpps/persist/executor"
)

// Moving many runs of numbers in one launch: copies of tables' rows, and gradients that become bfloat16 and come back.

//go:embed move.cu
var moveSource string

const (
	fewRuns     = 8    // up to this number, single copies take no longer than a launch and its list
	longestRun  = 4096 // of a block; longer runs are several
	moveThreads = 256
)

// motion is what a kernel of move.cu does.
type motion int

const (
	copying motion = iota
	packing
	unpacking
	motions
)

var motionTable = [motions]struct {
	kernel   string
	from, to uint64 // bytes of a number
}{
	copying:   {"vpps_move", 4, 4},
	packing:   {"vpps_move_pack", 4, 2},
	unpacking: {"vpps_move_unpack", 2, 4},
}

// mover is those kernels.
type mover struct {
	dev      gpu.Device
	compiler gpu.Compiler
	module   gpu.Module
	kernels  [motions]gpu.Function
	blocks   [motions]int   // that the device holds at once
	list     gpu.HostBuffer // mapped
	done     gpu.Event      // behind the last launch
}

// Move copies runs of floats, after all launches before it.
func (e *Executor) Move(list []executor.Run) error { return e.mover.copy(list) }

// Pack has runs of floats, times scale, become bfloat16, after all launches before it.
func (e *Executor) Pack(list []executor.Run, scale float32) error {
	return e.mover.move(packing, list, scale)
}

// Unpack has runs of bfloat16 become floats, after all launches before it.
func (e *Executor) Unpack(list []executor.Run) error { return e.mover.move(unpacking, list, 1) }

func (m *mover) copy(list []executor.Run) error {
	if len(list) > fewRuns {
		return m.move(copying, list, 1)
	}
	for i := range list {
		r := &list[i]
		if err := m.dev.CopyOnDevice(gpu.Ptr(r.To), gpu.Ptr(r.From), 4*int64(r.N)); err != nil {
			return err
		}
	}
	return nil
}

func (m *mover) move(what motion, list []executor.Run, scale float32) error {
	pieces := 0
	for i := range list {
		pieces += int((list[i].N + longestRun - 1) / longestRun)
	}
	if pieces == 0 {
		return nil
	}
	if err := m.readyToMove(pieces); err != nil {
		return err
	}
	how := &motionTable[what]
	to := unsafe.Slice((*executor.Run)(m.list.Mem), pieces)[:0]
	for _, r := range list {
		for r.N > 0 {
			n := min(r.N, longestRun)
			to = append(to, executor.Run{From: r.From, To: r.To, N: n})
			r = executor.Run{From: r.From + how.from*n, To: r.To + how.to*n, N: r.N - n}
		}
	}
	arguments := binary.LittleEndian.AppendUint64(nil, uint64(m.list.Dev))
	arguments = binary.LittleEndian.AppendUint32(arguments, uint32(pieces))
	arguments = binary.LittleEndian.AppendUint32(arguments, math.Float32bits(scale))
	if err := m.dev.Launch(m.kernels[what], min(pieces, m.blocks[what]), moveThreads, 0, arguments, []uint32{0}); err != nil {
		return err
	}
	return m.done.Record()
}

// readyToMove sees to the kernel, and to a list of n runs that nobody reads.
func (m *mover) readyToMove(n int) error {
	if m.done == nil {
		if err := m.compileMover(); err != nil {
			return err
		}
	}
	if err := m.done.Wait(); err != nil {
		return err
	}
	bytes := n * int(unsafe.Sizeof(executor.Run{}))
	if bytes <= m.list.Bytes {
		return nil
	}
	list, err := m.dev.AllocHost(bytes + bytes/2)
	if err != nil {
		return err
	}
	old := m.list
	m.list = list
	return m.dev.FreeHost(old)
}

func (m *mover) compileMover() error {
	image, log, err := m.compiler.Compile("move.cu", moveSource, []string{fmt.Sprintf("--gpu-architecture=sm_%d", archOf(m.dev.Info())), "--std=c++14"})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, log)
	}
	if m.module == nil {
		if m.module, err = m.dev.Load(image); err != nil {
			return err
		}
	}
	for what := range motionTable {
		if err = m.find(motion(what)); err != nil {
			return err
		}
	}
	m.done, err = m.dev.NewEvent()
	return err
}

// find gets a kernel of the module. Launches are cooperative: all blocks are on the device at once.
func (m *mover) find(what motion) (err error) {
	if m.kernels[what], err = m.module.Function(motionTable[what].kernel); err != nil {
		return err
	}
	each, err := m.kernels[what].MaxBlocksPerSM(moveThreads, 0)
	m.blocks[what] = each * m.dev.Info().SMs
	return err
}

// release gives all but pinned memory back.
func (m *mover) release() {
	if m.done != nil {
		m.done.Close()
	}
	if m.module != nil {
		m.module.Unload()
	}
}
