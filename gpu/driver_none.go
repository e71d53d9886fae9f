//go:build !cuda

package gpu

import "errors"

// OpenDriver loads the NVIDIA driver. This build cannot.
func OpenDriver() (Driver, error) {
	return nil, errors.New("built without CUDA support: build with make or cmake, which set the build tag cuda, or run on the CPU")
}
