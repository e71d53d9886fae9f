//go:build cuda

package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// fakeBLAS compiles a stand-in for cuBLAS, which VPPS_CUBLAS names until the test ends.
func fakeBLAS(t *testing.T) (lib string) {
	lib = filepath.Join(t.TempDir(), "libcublas.so.12")
	out, err := exec.Command("cc", "-shared", "-fPIC", "-Wall", "-o", lib, "testdata/fakecuda/cublas.c", "-ldl").CombinedOutput()
	require.NoError(t, err, string(out))
	t.Setenv("VPPS_CUBLAS", lib)
	return lib
}

// upload copies floats to memory of a device.
func upload(t *testing.T, d Device, v ...float32) Ptr {
	p, err := d.Alloc(int64(4 * len(v)))
	require.NoError(t, err)
	t.Cleanup(func() { d.Free(p) })
	require.NoError(t, d.CopyToDevice(p, unsafe.Pointer(&v[0]), 4*len(v)))
	return p
}

// A product works in the device's context, whatever thread it is called from, and adds to what is there if it is told to.
// With VPPS_TEST_GPU=1 it is that of the cuBLAS that is found.
func TestAProductOfCuBLAS(t *testing.T) {
	d := open(t)
	if os.Getenv("VPPS_TEST_GPU") == "" {
		fakeBLAS(t)
	}
	b, err := d.OpenBLAS()
	if err != nil && os.Getenv("VPPS_TEST_GPU") != "" {
		t.Skipf("skipped: needs an installed cuBLAS (%v)", err)
	}
	require.NoError(t, err)
	t.Log(b.Name())
	require.Contains(t, b.Name(), "cuBLAS 1")
	x, y := upload(t, d, 1, 2, 3, 4, 5, 6), upload(t, d, 1, 0, 0, 1) // 3x2 and 2x2
	nan := *(*float32)(unsafe.Pointer(&[]uint32{0xFFFFFFFF}[0]))
	z := upload(t, d, nan, nan, nan, nan, nan, nan)
	out := make([]float32, 6)
	require.NoError(t, b.Gemm(3, 2, 2, 2, x, y, 0, z))
	require.NoError(t, d.CopyFromDevice(unsafe.Pointer(&out[0]), z, 24))
	require.Equal(t, []float32{2, 4, 6, 8, 10, 12}, out)
	require.NoError(t, b.Gemm(3, 2, 2, 1, x, y, 1, z))
	require.NoError(t, d.CopyFromDevice(unsafe.Pointer(&out[0]), z, 24))
	require.Equal(t, []float32{3, 6, 9, 12, 15, 18}, out)
	require.NoError(t, b.Close())
}

// Whatever of it fails is told; nothing else than the file that is named is tried.
func TestCuBLASThatCannotBeUsed(t *testing.T) {
	d := onFake(t)
	t.Setenv("VPPS_CUBLAS", "/nowhere/libcublas.so.12")
	_, err := d.OpenBLAS()
	require.ErrorContains(t, err, "no usable cuBLAS: install the CUDA toolkit or the Python package nvidia-cublas, or set VPPS_CUBLAS")
	require.ErrorContains(t, err, "/nowhere/libcublas.so.12")
	t.Setenv("VPPS_CUBLAS", os.Getenv("VPPS_LIBCUDA"))
	_, err = d.OpenBLAS()
	require.ErrorContains(t, err, "it has no cublasCreate_v2")
	lib := fakeBLAS(t)
	for _, function := range []string{"cublasCreate_v2", "cublasSetStream_v2"} {
		t.Setenv("VPPS_FAKE_CUBLAS_FAIL", function+":13")
		_, err = d.OpenBLAS()
		require.ErrorContains(t, err, "begin with "+lib+": CUBLAS_STATUS_EXECUTION_FAILED (13)")
	}
	t.Setenv("VPPS_FAKE_CUBLAS_FAIL", "")
	b, err := d.OpenBLAS()
	require.NoError(t, err)
	t.Setenv("VPPS_FAKE_CUBLAS_FAIL", "cublasSgemm_v2:13")
	err = b.Gemm(1, 1, 1, 1, 0, 0, 0, 0)
	var refused *Error
	require.ErrorAs(t, err, &refused)
	require.True(t, refused.Refused())
	require.False(t, refused.Fatal() || refused.OutOfMemory())
	require.ErrorContains(t, err, "multiply 1x1 by 1x1 with cuBLAS on GPU 0: CUBLAS_STATUS_EXECUTION_FAILED (13)")
	t.Setenv("VPPS_FAKE_CUBLAS_FAIL", "")
	require.NoError(t, b.Close())
}

// The real library, where there is one, has all functions that are used: it begins, or says itself why it does not.
func TestCuBLASThatIsInstalledIsLoaded(t *testing.T) {
	b, err := onFake(t).OpenBLAS()
	if err == nil {
		require.NoError(t, b.Close())
		return
	}
	if !strings.Contains(err.Error(), "begin with ") {
		t.Skip("skipped: needs an installed cuBLAS")
	}
	t.Log(err)
	require.NotContains(t, err.Error(), "it has no")
}
