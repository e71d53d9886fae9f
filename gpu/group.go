package gpu

import (
	"errors"
	"fmt"

	"libvpps/gpu/cudaload"
)

// Group is a device's place in a group of devices, by NCCL: collective operations on the device's stream. All ranks make
// the same ones in the same order. None waits, but Close. Memory is the device's, or pinned. Its methods but Failure and
// Abort are called by one goroutine at a time.
type Group interface {
	// Name is the library and its version.
	Name() string
	// Sum sums ranges over all ranks, each rank's floats multiplied by its scale; nil on all: as they are. All have the
	// same bits of the sums.
	Sum(ranges []Range, scale *float32) error
	// SumBF16 sums n numbers of bfloat16 over all ranks, where they are. All have the same bits of the sums. Each addition is
	// rounded to bfloat16, unless the network adds.
	SumBF16(at Ptr, n int) error
	// Gather brings n words of each rank to all, by rank.
	Gather(from, to Ptr, n int) error
	// Broadcast brings n words of a rank to all.
	Broadcast(at Ptr, n, from int) error
	// Failure is what has gone wrong since, on the stream or between ranks.
	Failure() error
	// Abort ends what is on the stream, and gives everything back.
	Abort() error
	// Close gives everything back, after what is on the stream.
	Close() error
}

// Range is floats and where their sums go, which may be the same place.
type Range = cudaload.NCCLRange

// GroupIDBytes is the size of a group's id.
const GroupIDBytes = cudaload.NCCLIDBytes

// FindGroups loads the library that connects devices. It tells its version and file, or why it cannot be used.
func FindGroups() (name string, err error) {
	lib, err := cudaload.OpenNCCL()
	if err != nil {
		return "", err
	}
	return nameOf(lib), nil
}

func nameOf(lib *cudaload.NCCL) string {
	return fmt.Sprintf("NCCL %d.%d.%d (%s)", lib.Version/10000, lib.Version/100%100, lib.Version%100, lib.File)
}

// NewGroupID makes the id that the ranks of a group have in common. The process that makes it has rank 0.
func NewGroupID() ([]byte, error) {
	lib, err := cudaload.OpenNCCL()
	if err != nil {
		return nil, err
	}
	id, err := lib.ID()
	return id, libraryFailed(err, "make the id of a group with NCCL")
}

// OpenGroup makes a device a rank of a group. It returns when all ranks have called it.
func OpenGroup(dev Device, rank, size int, id []byte) (Group, error) {
	d, ok := dev.(interface{ order() cudaload.Stream })
	switch {
	case !ok:
		return nil, errors.New("the device is none of CUDA's")
	case len(id) != GroupIDBytes:
		return nil, fmt.Errorf("the id of a group has %d bytes: it has %d", len(id), GroupIDBytes)
	}
	lib, err := cudaload.OpenNCCL()
	if err != nil {
		return nil, err
	}
	r, err := lib.Join(d.order(), rank, size, id)
	if err != nil {
		return nil, libraryFailed(err, "join a group of %d GPUs with NCCL", size)
	}
	return &group{r, nameOf(lib)}, nil
}

type group struct {
	r    *cudaload.NCCLRank
	name string
}

func (g *group) Name() string { return g.name }
func (g *group) Sum(ranges []Range, scale *float32) error {
	return libraryFailed(g.r.Sum(ranges, scale), "sum with NCCL")
}
func (g *group) SumBF16(at Ptr, n int) error {
	return libraryFailed(g.r.SumBF16(uint64(at), n), "sum with NCCL")
}
func (g *group) Gather(from, to Ptr, n int) error {
	return libraryFailed(g.r.Gather(uint64(from), uint64(to), n), "gather with NCCL")
}
func (g *group) Broadcast(at Ptr, n, from int) error {
	return libraryFailed(g.r.Broadcast(uint64(at), n, from), "broadcast with NCCL")
}
func (g *group) Failure() error { return libraryFailed(g.r.Failure(), "work with NCCL") }
func (g *group) Abort() error   { return libraryFailed(g.r.Abort(), "end a group with NCCL") }
func (g *group) Close() error   { return libraryFailed(g.r.Close(), "leave a group with NCCL") }
