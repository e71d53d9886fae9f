package jit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"libvpps/gpu"
	"libvpps/gpu/cubin"
	"libvpps/persist/plan"
)

// Kernel is a plan's machine code and what the assembler says of it.
type Kernel struct {
	Image     []byte
	Registers int  // of a thread
	Stack     int  // bytes of local memory a thread: 0 means that nothing was spilled
	Cached    bool // found on disk
	Took      Times
}

// interpreterRegisters is how many of a thread's registers a kernel without any matrix may have. The compiler would take more
// where it may, without need.
const interpreterRegisters = 112

// SetAside is what plans set aside of a thread's registers for the interpreter: what a kernel without any matrix may have, less
// what Staging counts, and four more, because plans that left none spilled.
const SetAside = interpreterRegisters + 4 - plan.GemmStaging

// HasQuick tells whether a compiler has the option of a quick kernel: NVRTC 12.9 and later.
func HasQuick(c gpu.Compiler) bool {
	major, minor := c.Version()
	return major > 12 || major == 12 && minor >= 9
}

// Times is how long the steps of making kernels took.
type Times struct{ Source, Cache, Compiler time.Duration }

// Compile makes the machine code of a plan for an architecture (90 is sm_90), or finds it in the cache.
func Compile(c gpu.Compiler, p *plan.Plan, arch int, o Options, cache *Cache) (k *Kernel, err error) {
	if !slices.Contains(c.Archs(), arch) {
		major, minor := c.Version()
		return nil, fmt.Errorf("NVRTC %d.%d makes no code for sm_%d (it knows %v): install the NVRTC that belongs to the driver, or name it in VPPS_NVRTC", major, minor, arch, c.Archs())
	}
	var took Times
	begin := time.Now()
	lap := func(to *time.Duration) {
		now := time.Now()
		*to += now.Sub(begin)
		begin = now
	}
	src, err := Source(p, o)
	if err != nil {
		return nil, err
	}
	options := []string{fmt.Sprintf("--gpu-architecture=sm_%d", arch), "--std=c++14", "--fmad=false", "--ftz=true"}
	if len(p.Matrices) == 0 {
		options = append(options, fmt.Sprintf("--maxrregcount=%d", interpreterRegisters))
	}
	if o.Quick {
		options = append(options, "--Ofast-compile=min")
	}
	lap(&took.Source)
	key := cacheKey(c, src, options)
	defer func() {
		if err == nil {
			cache.count(k)
		}
		tell(c, p, arch, o, k, err)
	}()
	if image := cache.get(key); image != nil {
		if k, err := inspect(image); err == nil {
			k.Cached = true
			lap(&took.Cache)
			k.Took = took
			return k, nil
		}
		cache.drop(key)
	}
	lap(&took.Cache)
	over := progress(p, o)
	image, messages, err := c.Compile("vpps.cu", src, options)
	over()
	if err != nil {
		return nil, fmt.Errorf("the kernel does not compile: %w: %s", err, firstLines(messages, 8))
	}
	if k, err = inspect(image); err != nil {
		return nil, err
	}
	lap(&took.Compiler)
	cache.put(key, image)
	lap(&took.Cache)
	k.Took = took
	return k, nil
}

// inspect reads registers and stack from the machine code.
func inspect(image []byte) (*Kernel, error) {
	all, err := cubin.Kernels(image)
	if err != nil {
		return nil, err
	}
	k, ok := all[Entry]
	if !ok {
		return nil, fmt.Errorf("the machine code has no kernel %s", Entry)
	}
	return &Kernel{Image: image, Registers: k.Regs, Stack: k.Stack}, nil
}

func cacheKey(c gpu.Compiler, src string, options []string) string {
	major, minor := c.Version()
	h := sha256.New()
	fmt.Fprintf(h, "%d.%d\n%s\n%s", major, minor, strings.Join(options, " "), src)
	return hex.EncodeToString(h.Sum(nil))
}

func firstLines(s string, n int) string {
	lines := strings.SplitN(strings.TrimSpace(s), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], " | ")
}
