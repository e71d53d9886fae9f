//go:build !cuda

package gpu

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBuildWithoutCUDASaysSo(t *testing.T) {
	_, err := OpenDriver()
	require.ErrorContains(t, err, "built without CUDA support")
}
