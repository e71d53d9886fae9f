package kernel

import "C"

// A shared library's build keeps the compiled C++ of packages that export something and
// compiles that of all others anew each time, which takes 40 s here. So this package
// exports a function that nobody calls; the version script of libvpps.so hides it.
//
//export vppsKernelPackage
func vppsKernelPackage() {}
