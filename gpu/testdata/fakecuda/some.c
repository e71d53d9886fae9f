// clang-format off
// The functions of the stand-in that do something. Device memory is host memory,
// a stream does everything at once, and a launch of the kernel "store" writes its
// second parameter, 8 bytes, to where its first one points. With launch.cc the
// engine's kernel is interpreted, and with persist/cuda/standin/move.cc those of move.cu run. The environment variable
// VPPS_FAKE_FAIL=function:code makes one function fail; after
// function:code! so do all that need the context. CUDA_VISIBLE_DEVICES counts as for the real one.
#include <stdlib.h>
#include <string.h>
#include "cuda.h"
#include "image.h"

static _Thread_local CUcontext current;

static CUresult lost;
__attribute__((weak)) int vpps_fake_run(void *image, const void *arguments);
__attribute__((weak)) void vpps_fake_unload(void *image);
__attribute__((weak)) int vpps_standin_move(const char *kernel, const void *arguments, unsigned grid, unsigned block);

static CUresult fails(const char *function)
{
	const char *v = getenv("VPPS_FAKE_FAIL");
	size_t n = strlen(function);
	return v && !strncmp(v, function, n) && v[n] == ':' ? atoi(v + n + 1) : CUDA_SUCCESS;
}

// What the driver does first: the wished failure, then the check of the context.
#define BEGIN(function)                                                        \
	if (lost)                                                              \
		return lost;                                                   \
	if (fails(#function)) {                                                \
		if (strchr(getenv("VPPS_FAKE_FAIL"), '!'))                     \
			lost = fails(#function);                               \
		return fails(#function);                                       \
	}                                                                      \
	if (!current)                                                          \
		return CUDA_ERROR_INVALID_CONTEXT;

// Devices that CUDA_VISIBLE_DEVICES leaves of two: a list of numbers, which ends at the first other.
static int visible(int *which)
{
	const char *v = getenv("CUDA_VISIBLE_DEVICES");
	int n = 0;
	if (!v) {
		which[0] = 0, which[1] = 1;
		return 2;
	}
	while (n < 2 && (*v == '0' || *v == '1') && (!v[1] || v[1] == ',')) {
		which[n++] = *v - '0';
		v += v[1] ? 2 : 1;
	}
	return n;
}

CUresult cuInit(unsigned int f)
{
	int which[2];
	return fails("cuInit") ? fails("cuInit") : visible(which) ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
CUresult cuDeviceGet(CUdevice *d, int ordinal)
{
	int which[2];
	if (ordinal < 0 || ordinal >= visible(which))
		return CUDA_ERROR_INVALID_DEVICE;
	*d = which[ordinal];
	return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int *v) { *v = 13000; return CUDA_SUCCESS; }
CUresult cuDeviceGetCount(int *n) { int which[2]; *n = visible(which); return fails("cuDeviceGetCount"); }
CUresult cuDeviceGetName(char *name, int n, CUdevice d) { strncpy(name, d == 0 ? "Fake GPU" : "Fake GPU B", n); return CUDA_SUCCESS; }
CUresult cuDeviceTotalMem_v2(size_t *n, CUdevice d) { *n = (size_t)1 << 30; return CUDA_SUCCESS; }

CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d)
{
	switch ((int)a) {
	case 75: *v = 9; break;       // compute capability, major
	case 16: *v = 132; break;     // SMs
	// Where launches are interpreted, hardly more registers than the interpreter takes and so little
	// shared memory that it holds only some matrices of the tests' models.
	case 82: *v = vpps_fake_run ? 17408 : 65536; break; // registers an SM
	case 97: *v = vpps_fake_run ? 91136 : 232448; break; // shared memory a block, on request
	case 95: *v = 1; break;       // cooperative launch
	default: *v = 0;
	}
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult r, const char **s)
{
	*s = r == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER";
	return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult r, const char **s)
{
	*s = r == CUDA_ERROR_INVALID_SOURCE ? "the fake driver was built with another instruction set: remove build/standin and make it again"
					       : "as the fake driver was told";
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) { *c = (CUcontext)(0x1000 + (size_t)d); return fails("cuDevicePrimaryCtxRetain"); }
static _Thread_local CUcontext below[8];
static _Thread_local int depth;
CUresult cuCtxPushCurrent_v2(CUcontext c);
CUresult cuCtxCreate_v2(CUcontext *c, unsigned f, CUdevice d) { *c = (CUcontext)(0x4000 + (size_t)d); return cuCtxPushCurrent_v2(*c); }
CUresult cuCtxSetCurrent(CUcontext c) { current = c; return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent_v2(CUcontext c)
{
	if (depth == 8)
		abort();
	below[depth++] = current;
	current = c;
	return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext *c)
{
	if (depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	*c = current;
	current = below[--depth];
	return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext *c) { *c = current; return CUDA_SUCCESS; }

static void *allocate(size_t n, CUresult *r)
{
	void *p = n <= (size_t)1 << 30 ? malloc(n) : NULL;
	*r = p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	return p;
}
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) { BEGIN(cuMemAlloc_v2) CUresult r; *p = (CUdeviceptr)allocate(n, &r); return r; }
CUresult cuMemFree_v2(CUdeviceptr p) { BEGIN(cuMemFree_v2) free((void *)p); return CUDA_SUCCESS; }
CUresult cuMemGetInfo_v2(size_t *f, size_t *t) { BEGIN(cuMemGetInfo_v2) *f = 1000; *t = (size_t)1 << 30; return CUDA_SUCCESS; }
CUresult cuMemHostAlloc(void **p, size_t n, unsigned f) { BEGIN(cuMemHostAlloc) CUresult r; *p = allocate(n, &r); return r; }
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *p, unsigned f) { BEGIN(cuMemHostGetDevicePointer_v2) *d = (CUdeviceptr)p; return CUDA_SUCCESS; }
CUresult cuMemFreeHost(void *p) { BEGIN(cuMemFreeHost) free(p); return CUDA_SUCCESS; }

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr d, const void *h, size_t n, CUstream s) { BEGIN(cuMemcpyHtoDAsync_v2) memcpy((void *)d, h, n); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoHAsync_v2(void *h, CUdeviceptr d, size_t n, CUstream s) { BEGIN(cuMemcpyDtoHAsync_v2) memcpy(h, (void *)d, n); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr a, CUdeviceptr b, size_t n, CUstream s) { BEGIN(cuMemcpyDtoDAsync_v2) memcpy((void *)a, (void *)b, n); return CUDA_SUCCESS; }
// These do not ask for a stream; tests use them as another user of the driver would.
CUresult cuMemcpyHtoD_v2(CUdeviceptr d, const void *h, size_t n) { BEGIN(cuMemcpyHtoD_v2) memcpy((void *)d, h, n); return CUDA_SUCCESS; }
CUresult cuMemcpyDtoH_v2(void *h, CUdeviceptr d, size_t n) { BEGIN(cuMemcpyDtoH_v2) memcpy(h, (void *)d, n); return CUDA_SUCCESS; }
CUresult cuMemsetD32Async(CUdeviceptr d, unsigned v, size_t n, CUstream s)
{
	BEGIN(cuMemsetD32Async)
	for (size_t i = 0; i < n; i++)
		((unsigned *)d)[i] = v;
	return CUDA_SUCCESS;
}
CUresult cuStreamCreate(CUstream *s, unsigned f) { BEGIN(cuStreamCreate) *s = (CUstream)0x2000; return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream s) { BEGIN(cuStreamSynchronize) return CUDA_SUCCESS; }
CUresult cuEventCreate(CUevent *e, unsigned f) { BEGIN(cuEventCreate) *e = (CUevent)0x3000; return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent e) { BEGIN(cuEventSynchronize) return CUDA_SUCCESS; }
CUresult cuEventQuery(CUevent e) { BEGIN(cuEventQuery) return CUDA_SUCCESS; }
CUresult cuEventElapsedTime(float *ms, CUevent a, CUevent b) { *ms = 0.25f; return CUDA_SUCCESS; }

// A module is a copy of the image: of the first 4 bytes, or of all where launches are
// interpreted. A function is the name asked for in a module.
typedef struct {
	char *name;
	void *module;
} Function;
CUresult cuModuleLoadData(CUmodule *m, const void *image)
{
	BEGIN(cuModuleLoadData)
	size_t n = vpps_fake_run ? sizeof(Image) : 4;
	*m = malloc(n);
	memcpy(*m, image, n);
	return memcmp(image, "\x7f" "ELF", 4) ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule m)
{
	BEGIN(cuModuleUnload)
	if (vpps_fake_unload)
		vpps_fake_unload(m);
	free(m);
	return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name)
{
	BEGIN(cuModuleGetFunction)
	Function *function = malloc(sizeof *function);
	function->name = strdup(name);
	function->module = m;
	*f = (CUfunction)function;
	return strcmp(name, "missing") ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult cuFuncGetAttribute(int *v, CUfunction_attribute a, CUfunction f) { *v = a == CU_FUNC_ATTRIBUTE_NUM_REGS ? 168 : 0; return CUDA_SUCCESS; }
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, CUfunction f, int block, size_t shared) { *n = 1; return CUDA_SUCCESS; }
CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **p)
{
	BEGIN(cuLaunchCooperativeKernel)
	if (gx > 132)
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	const Function *function = (const Function *)f;
	if (!strcmp(function->name, "store"))
		memcpy(*(void **)p[0], p[1], 8);
	if (!strcmp(function->name, "vpps_run") && vpps_fake_run && !vpps_fake_run(function->module, p[0]))
		return CUDA_ERROR_INVALID_SOURCE;
	if (!strncmp(function->name, "vpps_move", 9) && (!vpps_standin_move || !vpps_standin_move(function->name, p[0], gx, bx)))
		return CUDA_ERROR_NOT_FOUND;
	return CUDA_SUCCESS;
}
