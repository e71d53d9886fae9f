package jit

// Files of the cache become code of this process, so they are read only where no other user can have
// written them, and reading never waits.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// errUntrusted: another program, or another user, wrote the file.
var errUntrusted = errors.New("not a file that the cache wrote")

// readTrusted reads a regular file of a bounded number of bytes, of this process's user, that nobody else may write.
func readTrusted(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.ENXIO) { // a link, a socket
		return nil, errUntrusted
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Geteuid() || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || info.Size() > most {
		return nil, fmt.Errorf("%s: %w", path, errUntrusted)
	}
	b := make([]byte, info.Size())
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // it has become shorter; its hash will tell
	}
	return b[:n], err
}
