package cudaload

// NCCL, the library of collective operations: where it is looked for, and ranks of a group.

/*
#include <stdlib.h>
#include "nccl.h"

static const char *nccl_text(const struct nccl *l, int r) { return l->ncclGetErrorString ? l->ncclGetErrorString(r) : "failed"; }
static const char *nccl_last(const struct nccl *l) { return l->ncclGetLastError ? l->ncclGetLastError(NULL) : ""; }
static int nccl_id(const struct nccl *l, void *id) { return l->ncclGetUniqueId(id); }
static int nccl_failure(const struct nccl *l, ncclComm_t c, int *r) { return l->ncclCommGetAsyncError(c, r); }

#cgo nocallback vpps_nccl_sum
#cgo noescape vpps_nccl_sum
#cgo nocallback nccl_failure
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"libvpps/env"
)

// NCCL is a loaded library.
type NCCL struct {
	File    string
	Version int // 22304 is 2.23.4
	lib     *C.struct_nccl
}

// NCCLIDBytes is the size of a group's id.
const NCCLIDBytes = C.sizeof_ncclUniqueId

// OpenNCCL opens NCCL. The environment variable VPPS_NCCL names the file to take instead of searching.
func OpenNCCL() (*NCCL, error) {
	files := []string{env.String("VPPS_NCCL")}
	if files[0] == "" {
		files = libraryFiles([]string{"libnccl.so.2"}, "nccl/lib", "cu[0-9]*/lib")
	}
	var failed []error
	for _, file := range files {
		n := &NCCL{lib: (*C.struct_nccl)(C.calloc(1, C.sizeof_struct_nccl))} // as long as the process
		var msg [512]C.char
		var version C.int
		if C.vpps_open_nccl(text(file), n.lib, &version, &msg[0], C.size_t(len(msg))) == 0 {
			n.File, n.Version = C.GoString(&msg[0]), int(version)
			return n, nil
		}
		C.free(unsafe.Pointer(n.lib))
		failed = append(failed, errors.New(C.GoString(&msg[0])))
	}
	return nil, fmt.Errorf("no usable NCCL: install NCCL or the Python package nvidia-nccl-cu12 or -cu13, or set VPPS_NCCL to the file libnccl.so.2\n%w", errors.Join(failed...))
}

// ID makes the id of a group, which its ranks have in common. The process that makes it is rank 0.
func (n *NCCL) ID() ([]byte, error) {
	id := make([]byte, NCCLIDBytes)
	if r := C.nccl_id(n.lib, unsafe.Pointer(&id[0])); r != 0 {
		return nil, n.failure(r)
	}
	return id, nil
}

// failure is the error of a result that is not 0: the driver's, or NCCL's own.
func (n *NCCL) failure(r C.int) error {
	if r < 0 {
		return Error(-r)
	}
	text := fmt.Sprintf("%s (%d)", C.GoString(C.nccl_text(n.lib, r)), int(r))
	if last := C.GoString(C.nccl_last(n.lib)); last != "" {
		text += ": " + last
	}
	return errors.New(text)
}

// NCCLRank is a stream's place in a group. Its methods but Failure and Abort are called by one goroutine at a time.
type NCCLRank struct {
	lib    *NCCL
	comm   C.ncclComm_t
	stream Stream
}

// Join makes a stream's device a rank of a group. It returns when all ranks have joined.
func (n *NCCL) Join(stream Stream, rank, size int, id []byte) (*NCCLRank, error) {
	r := &NCCLRank{lib: n, stream: stream}
	var unique C.ncclUniqueId
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&unique)), NCCLIDBytes), id)
	if code := C.vpps_nccl_create(n.lib, stream.ctx(), C.int(size), &unique, C.int(rank), &r.comm); code != 0 {
		return nil, n.failure(code)
	}
	return r, nil
}

// NCCLRange is floats in the device's memory and where their sums go.
type NCCLRange struct{ From, To, N uint64 }

const _ = -(unsafe.Sizeof(NCCLRange{}) - C.sizeof_struct_vpps_range)

// Sum puts the sums of ranges over all ranks on the stream. Each rank's floats are multiplied by its scale, if there is one.
func (r *NCCLRank) Sum(ranges []NCCLRange, scale *float32) error {
	return r.check(C.vpps_nccl_sum(r.lib.lib, r.stream.ctx(), r.stream.handle(), r.comm,
		(*C.struct_vpps_range)(unsafe.Pointer(unsafe.SliceData(ranges))), C.size_t(len(ranges)), (*C.float)(scale)))
}

// SumBF16 puts the sums of n numbers of bfloat16 over all ranks on the stream; they go where the numbers are.
func (r *NCCLRank) SumBF16(at uint64, n int) error {
	return r.check(C.vpps_nccl_sum_bf16(r.lib.lib, r.stream.ctx(), r.stream.handle(), r.comm, C.CUdeviceptr(at), C.size_t(n)))
}

// Gather puts on the stream that each rank's n words come to all, by rank.
func (r *NCCLRank) Gather(from, to uint64, n int) error {
	return r.check(C.vpps_nccl_gather(r.lib.lib, r.stream.ctx(), r.stream.handle(), r.comm, C.CUdeviceptr(from), C.CUdeviceptr(to), C.size_t(n)))
}

// Broadcast puts on the stream that n words come from a rank to all.
func (r *NCCLRank) Broadcast(at uint64, n, from int) error {
	return r.check(C.vpps_nccl_broadcast(r.lib.lib, r.stream.ctx(), r.stream.handle(), r.comm, C.CUdeviceptr(at), C.size_t(n), C.int(from)))
}

// Failure is what has gone wrong since, on the stream or between ranks.
func (r *NCCLRank) Failure() error {
	var later C.int
	if code := C.nccl_failure(r.lib.lib, r.comm, &later); code != 0 {
		return r.check(code)
	}
	return r.check(later)
}

// Abort ends what is on the stream and gives everything back; the rank cannot be used afterwards.
func (r *NCCLRank) Abort() error {
	return r.check(C.vpps_nccl_abort(r.lib.lib, r.stream.ctx(), r.comm))
}

// Close gives everything back, after what is on the stream.
func (r *NCCLRank) Close() error {
	return r.check(C.vpps_nccl_destroy(r.lib.lib, r.stream.ctx(), r.comm))
}

func (r *NCCLRank) check(code C.int) error {
	if code == 0 {
		return nil
	}
	return r.lib.failure(code)
}
