package jit

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/gpu/mocks"
)

// What somebody else put, or may have put, in a kernel's place is not read, and does not keep a compiler waiting.
func TestOnlyOwnRegularFilesAreRead(t *testing.T) {
	for name, replace := range map[string]func(t *testing.T, file string){
		"a pipe": func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, syscall.Mkfifo(file, 0o600))
		},
		"a folder": func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.MkdirAll(filepath.Join(file, "in use"), 0o700))
		},
		"a link": func(t *testing.T, file string) {
			require.NoError(t, os.Rename(file, file+".elsewhere"))
			require.NoError(t, os.Symlink(file+".elsewhere", file))
		},
		"a device": func(t *testing.T, file string) {
			require.NoError(t, os.Remove(file))
			require.NoError(t, os.Symlink("/dev/zero", file))
		},
		"a file that the group may write": func(t *testing.T, file string) {
			require.NoError(t, os.Chmod(file, 0o620))
		},
		"a file that all may write": func(t *testing.T, file string) {
			require.NoError(t, os.Chmod(file, 0o602))
		},
		"another user's file": func(t *testing.T, file string) {
			if os.Geteuid() != 0 {
				t.Skip("skipped: needs root")
			}
			require.NoError(t, os.Chown(file, 65534, -1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &counting{Compiler: mocks.NVRTC(t)}
			cache := newCache(t)
			compile(t, c, cache, 8, 90, Options{})
			file := filepath.Join(cache.Dir, names(t, cache.Dir)[0])
			replace(t, file)
			require.False(t, compile(t, c, cache, 8, 90, Options{}).Cached)
			require.Equal(t, 2, c.compiled)
		})
	}
}

func TestLargeFilesAreNotRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Truncate(file, 1<<40))
	_, err := readTrusted(file, 256<<20)
	require.ErrorIs(t, err, errUntrusted)
}
