package cuda

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"unsafe"

	"libvpps/gpu"
	"libvpps/persist/executor"
)

// Copying many runs of floats: the rows of tables. A kernel of its own does it in one launch.

//go:embed move.cu
var moveSource string

const (
	fewRuns     = 8    // up to this number, single copies take no longer than a launch and its list
	longestRun  = 4096 // of a block; longer runs are several
	moveThreads = 256
)

// mover is that kernel.
type mover struct {
	dev      gpu.Device
	compiler gpu.Compiler
	module   gpu.Module
	kernel   gpu.Function
	list     gpu.HostBuffer // mapped
	done     gpu.Event      // behind the last launch
}

// Move copies runs of floats, after all launches before it.
func (e *Executor) Move(list []executor.Run) error { return e.mover.move(list) }

func (m *mover) move(list []executor.Run) error {
	if len(list) > fewRuns {
		return m.moveMany(list)
	}
	for i := range list {
		r := &list[i]
		if err := m.dev.CopyOnDevice(gpu.Ptr(r.To), gpu.Ptr(r.From), 4*int64(r.N)); err != nil {
			return err
		}
	}
	return nil
}

func (m *mover) moveMany(list []executor.Run) error {
	pieces := 0
	for i := range list {
		pieces += int(list[i].N+longestRun-1) / longestRun
	}
	if err := m.readyToMove(pieces); err != nil {
		return err
	}
	to := unsafe.Slice((*executor.Run)(m.list.Mem), pieces)[:0]
	for _, r := range list {
		for r.N > 0 {
			n := min(r.N, longestRun)
			to = append(to, executor.Run{From: r.From, To: r.To, N: n})
			r = executor.Run{From: r.From + 4*n, To: r.To + 4*n, N: r.N - n}
		}
	}
	arguments := binary.LittleEndian.AppendUint64(nil, uint64(m.list.Dev))
	arguments = binary.LittleEndian.AppendUint64(arguments, uint64(pieces))
	if err := m.dev.Launch(m.kernel, min(pieces, 2*m.dev.Info().SMs), moveThreads, 0, arguments, []uint32{0}); err != nil {
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
	if m.kernel, err = m.module.Function("vpps_move"); err != nil {
		return err
	}
	m.done, err = m.dev.NewEvent()
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
