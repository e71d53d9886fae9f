package jit

// The cache of machine code on disk: one file a kernel, named by the hash of everything that went
// into it. A file is written under another name, synced and renamed, so that processes
// starting together never see half of one; it ends with a hash of its contents, so that damage
// is noticed. A cache that cannot be used only costs time.

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Cache is a folder of machine code. A nil Cache holds nothing.
type Cache struct {
	Dir string
	Max int64 // bytes that the folder may hold; the oldest files go first
	Err error // the first thing that went wrong, for reports
}

// OpenCache returns the cache in VPPS_CACHE_DIR, or in the user's cache folder.
func OpenCache() *Cache {
	dir := os.Getenv("VPPS_CACHE_DIR")
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return &Cache{Err: err}
		}
		dir = filepath.Join(base, "vpps")
	}
	return &Cache{Dir: dir, Max: 256 << 20}
}

func (c *Cache) path(key string) string { return filepath.Join(c.Dir, key+".cubin") }

// get returns what is stored under key, nil if there is nothing sound.
func (c *Cache) get(key string) []byte {
	if c == nil || c.Dir == "" {
		return nil
	}
	b, err := os.ReadFile(c.path(key))
	if err != nil || len(b) < sha256.Size {
		return nil
	}
	image, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if want := sha256.Sum256(image); !bytes.Equal(sum, want[:]) {
		c.drop(key)
		return nil
	}
	now := time.Now()
	os.Chtimes(c.path(key), now, now) // recently used
	return image
}

func (c *Cache) drop(key string) {
	if c != nil && c.Dir != "" {
		os.Remove(c.path(key))
	}
}

// put stores an image; failures are kept in Err and change nothing else.
func (c *Cache) put(key string, image []byte) {
	if c == nil || c.Dir == "" {
		return
	}
	if err := c.write(key, image); err != nil && c.Err == nil {
		c.Err = err
	}
}

func (c *Cache) write(key string, image []byte) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	c.shrink(int64(len(image)))
	f, err := os.CreateTemp(c.Dir, "new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is left of it once it is renamed
	sum := sha256.Sum256(image)
	_, err = f.Write(append(slices.Clone(image), sum[:]...))
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), c.path(key))
}

// shrink removes the least recently used files until more bytes fit.
func (c *Cache) shrink(more int64) {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return
	}
	var files []os.FileInfo
	total := more
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
			total += info.Size()
		}
	}
	slices.SortFunc(files, func(a, b os.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files {
		if total <= c.Max {
			return
		}
		if os.Remove(filepath.Join(c.Dir, f.Name())) == nil {
			total -= f.Size()
		}
	}
}
