package persist

// Writing a file as a whole: what a kill, a full disk or a power failure interrupts leaves the old file.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// atomicFile is a new version of a file, written beside it. vpps::atomic_file is the same in C++.
type atomicFile struct {
	*os.File
	path string
}

// createAtomic begins a new version. One that a killed process has left unfinished is taken over; its lock went with
// the process.
func createAtomic(name string) (*atomicFile, error) {
	path := name
	if real, err := filepath.EvalSymlinks(name); err == nil {
		path = real // a link stays
	}
	mode := os.FileMode(0o666)
	old, err := os.Stat(path)
	if err == nil {
		if mode = old.Mode().Perm(); !old.Mode().IsRegular() {
			return nil, wrong(ErrFile, "cannot write %s: it is no ordinary file", name)
		}
		if err := syscall.Access(path, 2); err != nil { // W_OK
			return nil, wrong(ErrFile, "cannot write %s: %v", name, err)
		}
	}
	for {
		f, err := os.OpenFile(path+".tmp", os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, mode)
		if err != nil {
			return nil, wrong(ErrFile, "cannot write %s: %v", name, err)
		}
		mine, err := f.Stat()
		switch {
		case err != nil:
		case !mine.Mode().IsRegular():
			err = errors.New("its temporary file is no ordinary file")
		case syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == syscall.EWOULDBLOCK:
			err = errors.New("another writer is at work")
		default:
			if there, e := os.Stat(f.Name()); e != nil || !os.SameFile(mine, there) {
				f.Close() // the other writer was just done with it
				continue
			}
			if err = f.Truncate(0); err == nil && old != nil {
				err = f.Chmod(mode)
			}
		}
		if err != nil {
			f.Close()
			return nil, wrong(ErrFile, "cannot write %s: %v", name, err)
		}
		return &atomicFile{f, path}, nil
	}
}

// commit stores the new version and puts it in the place of the old one.
func (f *atomicFile) commit() error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), f.path); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(f.path))
	if err != nil {
		return nil // it may be written, but not read
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("the new version is there, but may be lost if the machine stops: %w", err)
	}
	return nil
}

// discard drops a version that is not committed.
func (f *atomicFile) discard() {
	os.Remove(f.Name()) // before the lock goes
	f.Close()
}
