// Package gpu is everything the engine wants from NVIDIA's software: devices,
// their memory, launches (Driver, Device) and the run-time compiler (Compiler). They are found
// when they are first asked for; nothing is needed to link or to start a program. The interfaces
// have mocks in gpu/mocks.
package gpu

//go:generate go run github.com/golang/mock/mockgen@v1.6.0 -source=gpu.go -destination=mocks/gpu.go -package=mocks

import "unsafe"

// Ptr is an address in device memory; 0 is no memory.
type Ptr uint64

// Info describes a device. Sizes are in bytes, registers have 32 bits.
type Info struct {
	Ordinal             int // as CUDA counts, after CUDA_VISIBLE_DEVICES
	Name                string
	Major, Minor        int // compute capability: 9, 0 is sm_90
	SMs                 int
	RegsPerSM           int
	SharedPerBlockOptin int // what SetMaxShared can ask for at most
	L2Bytes             int
	TotalMem            int64
	DriverVersion       int // newest CUDA it supports: 13000 is 13.0
	Cooperative         bool
}

// HostBuffer is pinned host memory. It belongs to the device that made it and is
// freed by its FreeHost or Close.
type HostBuffer struct {
	Mem   unsafe.Pointer // for the host
	Dev   Ptr            // for the device
	Bytes int
}

// Driver gives access to the devices of this machine.
type Driver interface {
	// DeviceCount is the number of devices that CUDA_VISIBLE_DEVICES leaves.
	DeviceCount() (int, error)
	// Open makes a device ready for work. The caller closes it.
	Open(ordinal int) (Device, error)
	// File is the driver's library.
	File() string
}

// Device is one GPU: its primary context, which other CUDA users of the process
// share, and one stream of our own on which everything but CopyAhead runs in the order of
// the calls. All methods may be called from any goroutine. Errors are of type *Error
// where the driver refused.
type Device interface {
	Info() Info

	// Alloc returns device memory of that many bytes, aligned to 256, with unspecified contents.
	Alloc(bytes int64) (Ptr, error)
	// Free gives memory of Alloc back; it may wait for the device. Free(0) does nothing.
	Free(p Ptr) error
	// AllocHost returns pinned memory that the device can also address.
	AllocHost(bytes int) (HostBuffer, error)
	// FreeHost gives it back. Nothing on the stream may still use it.
	FreeHost(b HostBuffer) error

	// CopyToDevice does not wait where src lies in a HostBuffer of this device: src must then stay
	// unchanged until the stream has passed the copy. From other memory it returns when it is done.
	CopyToDevice(dst Ptr, src unsafe.Pointer, bytes int) error
	// CopyAhead copies from a HostBuffer of this device beside what is on the stream, perhaps before
	// it is done; what is put on the stream from now on waits for the copy. Nothing that is on the
	// stream may use dst.
	CopyAhead(dst Ptr, src unsafe.Pointer, bytes int) error
	// CopyFromDevice returns when everything on the stream and then the copy are done.
	CopyFromDevice(dst unsafe.Pointer, src Ptr, bytes int) error
	// CopyOnDevice does not wait. The ranges must not overlap.
	CopyOnDevice(dst, src Ptr, bytes int64) error
	// Memset32 sets count words of 4 bytes and does not wait.
	Memset32(dst Ptr, v uint32, count int64) error

	// Load loads machine code that Compiler made. The caller unloads it.
	Load(image []byte) (Module, error)
	// Launch starts a cooperative grid (all blocks run at once) and does not wait. shared is dynamic
	// shared memory in bytes a block; the value of parameter i begins at args[offsets[i]].
	Launch(f Function, grid, block, shared int, args []byte, offsets []uint32) error
	// Synchronize waits for everything on the stream and returns what went wrong there.
	Synchronize() error
	// NewEvent makes a mark that can be put on the stream. The caller closes it.
	NewEvent() (Event, error)
	// NewTimedEvent makes one for Elapsed. Recording it costs the host 0.7 us and the device 1.5 us,
	// against 0.1 us for one without time (H200).
	NewTimedEvent() (Event, error)

	// MemInfo is what is free and what there is of device memory, in bytes.
	MemInfo() (free, total int64, err error)
	// Counts is what the process has asked the driver for since it started.
	Counts() Counts
	// Close waits for the stream and gives everything back. The device cannot be used afterwards.
	Close() error
}

// Event marks a place on the stream.
type Event interface {
	// Record puts the mark behind everything on the stream; a second Record moves it.
	Record() error
	// Done tells whether the stream has passed the mark (true before the first Record).
	Done() (bool, error)
	// Wait returns when the stream has passed the mark.
	Wait() error
	// Elapsed is the device's time between two passed marks of NewTimedEvent.
	Elapsed(since Event) (microseconds float64, err error)
	Close() error
}

// Module is machine code on a device.
type Module interface {
	// Function finds an extern "C" kernel.
	Function(name string) (Function, error)
	// Unload takes the code away. None of its kernels may be running.
	Unload() error
}

// Function is a kernel.
type Function interface {
	// Registers is how many registers a thread has.
	Registers() int
	// LocalBytes is the memory of a thread for what did not fit in registers; 0 is no spills.
	LocalBytes() int
	// SetMaxShared allows that many bytes of dynamic shared memory a block (default 48 KiB).
	SetMaxShared(bytes int) error
	// MaxBlocksPerSM is how many blocks of so many threads and bytes of dynamic shared memory run at
	// once on an SM; a cooperative grid may have at most SMs times as many blocks.
	MaxBlocksPerSM(block, shared int) (int, error)
}

// Counts counts calls of the driver by the whole process (all devices, and every
// library inside libvpps.so), taken where they leave it. Unchanged between two
// moments means: nothing was asked of the driver.
type Counts struct {
	Launches         uint64
	CopiesToDevice   uint64
	CopiesFromDevice uint64
	CopiesOnDevice   uint64
	Memsets          uint64
	Allocs           uint64 // device and pinned
	StreamWaits      uint64 // waits for a stream or an event
}

// Compiler is NVRTC, NVIDIA's run-time compiler; it needs neither driver nor device.
// Its methods may be called from several goroutines.
type Compiler interface {
	Version() (major, minor int)
	// Archs lists the compute capabilities it makes machine code for: 75, 80, 90, ...
	Archs() []int
	// Compile makes machine code (a cubin) for the architecture named by the option
	// --gpu-architecture=sm_NN. name is what messages call the source. The log is the compiler's, also
	// when it fails.
	Compile(name, src string, options []string) (image []byte, log string, err error)
}
