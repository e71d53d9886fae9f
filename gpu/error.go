package gpu

import (
	"errors"
	"fmt"

	"libvpps/gpu/cudaload"
)

// Error is a call that the driver refused, or a library.
type Error struct {
	Doing string // what was attempted, such as "allocate 4096 bytes on GPU 0"
	Code  int    // CUresult
	Name  string // such as CUDA_ERROR_OUT_OF_MEMORY
	Text  string // name, code and the driver's own description

	Library bool // a library refused it, not the driver: there is no code
}

func (e *Error) Error() string {
	s := e.Doing + ": " + e.Text
	if cure := cures[e.Code]; cure != "" {
		s += ": " + cure
	}
	return s
}

// OutOfMemory tells whether there was too little device or pinned memory.
func (e *Error) OutOfMemory() bool { return e.Code == int(cudaload.ErrOutOfMemory) }

// Refused tells whether a launch did not start because the device has too little room for it, or a library's
// work for whatever reason: if the device is lost the next call tells.
func (e *Error) Refused() bool { return e.Library || e.Code == 701 || e.Code == 720 }

// Fatal tells whether the context is lost: every later call on the device fails,
// for every CUDA user of the process.
func (e *Error) Fatal() bool { return fatal[e.Code] }

var cures = map[int]string{
	2:   "use smaller batches or a smaller model, or end other programs on this GPU",
	100: "check nvidia-smi and CUDA_VISIBLE_DEVICES, or run on the CPU",
	101: "choose a device that nvidia-smi lists and CUDA_VISIBLE_DEVICES leaves",
	209: "the machine code was made for another GPU: empty the kernel cache",
	218: "the machine code is damaged or of another GPU: empty the kernel cache",
	720: "use fewer blocks, or fewer threads or less shared memory a block",
	803: "install a driver that fits the kernel module, or restart the machine",
}

// From these results on, cuda.h says, the process must be restarted to use CUDA.
var fatal = map[int]bool{
	214: true, // ECC_UNCORRECTABLE
	220: true, // NVLINK_UNCORRECTABLE
	700: true, // ILLEGAL_ADDRESS
	702: true, // LAUNCH_TIMEOUT
	709: true, // CONTEXT_IS_DESTROYED
	710: true, // ASSERT
	714: true, // HARDWARE_STACK_ERROR
	715: true, // ILLEGAL_INSTRUCTION
	716: true, // MISALIGNED_ADDRESS
	717: true, // INVALID_ADDRESS_SPACE
	718: true, // INVALID_PC
	719: true, // LAUNCH_FAILED
	999: true, // UNKNOWN
}

// failed gives an error of the driver its context; nil stays nil.
func failed(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	doing = fmt.Sprintf(doing, args...)
	var code cudaload.Error
	if errors.As(err, &code) {
		return &Error{Doing: doing, Code: int(code), Name: code.Name(), Text: code.Error()}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// libraryFailed gives an error of a library its context: the driver's own stay those.
func libraryFailed(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	var code cudaload.Error
	if errors.As(err, &code) {
		return failed(err, doing, args...)
	}
	return &Error{Doing: fmt.Sprintf(doing, args...), Text: err.Error(), Library: true}
}
