package ops

/*
#cgo CFLAGS: -I${SRCDIR}/../../include
#cgo noescape vpps_check
#cgo nocallback vpps_check
#include "shape.h"

static int64_t vpps_check(const uint32_t *words, uint32_t first, uint32_t count, const void *dims,
                          uint32_t dim_count, uint32_t *node_dims, char *msg, size_t size) {
  return vpps_check_dims(words, first, count, (const vpps_dim *)dims, dim_count, node_dims, msg, size);
}
*/
import "C"

import (
	"bytes"
	"unsafe"
)

// CheckDims runs the shape rules of shape.h, the one place where they stand, over nodes
// [first, first+count) of structurally valid wire words, in one call. D is laid out as a
// vpps_dim; nodeDims holds the dim of every node, the new ones included. It returns the
// first bad node and the reason, or -1, or -2 if there is no memory.
func CheckDims[D any](words []uint32, first, count int, dims []D, nodeDims []uint32) (node int, reason string) {
	if count == 0 {
		return -1, ""
	}
	if unsafe.Sizeof(dims[0]) != C.sizeof_vpps_dim {
		return first, "the dims are not laid out as vpps_dim"
	}
	var msg [512]byte
	bad := C.vpps_check((*C.uint32_t)(unsafe.Pointer(&words[0])), C.uint32_t(first), C.uint32_t(count),
		unsafe.Pointer(&dims[0]), C.uint32_t(len(dims)), (*C.uint32_t)(unsafe.Pointer(&nodeDims[0])),
		(*C.char)(unsafe.Pointer(&msg[0])), C.size_t(len(msg)))
	if bad == -1 {
		return -1, ""
	}
	text := msg[:]
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	if _, after, ok := bytes.Cut(text, []byte(": ")); ok { // the caller names the operation
		text = after
	}
	return int(bad), string(text)
}
