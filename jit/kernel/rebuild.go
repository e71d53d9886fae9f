package kernel

import "C"

// A shared library's build needs the header of each package's exported functions, and compiles a package without one
// anew each time, which takes minutes here. So this package exports a function that nobody calls; the version script of
// libvpps.so hides it. Go 1.26 keeps the header only where the shared library is what the package is first compiled for:
// before tests, which are built with the same flags (GOFLAGS_TEST in the Makefile).
//
//export vppsKernelPackage
func vppsKernelPackage() {}
