package jit

// The cache on disk: one file a kernel, named by the hash of everything that went into it, and one
// for each choice among plans. A file is written under another name, synced and renamed, so that processes
// starting together never see half of one; it ends with a hash of its name and contents, so that
// damage is noticed, and another kernel's file under this name. A cache that cannot be used only
// costs time. Files that the cache did not write are left alone, whatever folder it is given.

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"libvpps/env"
	"libvpps/log"
)

// Cache is a folder of machine code. A nil Cache holds nothing.
type Cache struct {
	Dir string
	Max int64 // bytes that the folder may hold; the oldest files go first
	Err error // the first thing that went wrong, see Report

	mu     sync.Mutex // of Err and counts
	counts Counts
}

// Counts is how kernels were come by.
type Counts struct {
	Compiled, Found uint64        // by the compiler, and in the cache
	Compiling       time.Duration // by the compiler, all kernels together
}

// Counts is what Compile did with this cache so far.
func (c *Cache) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// count notes a kernel.
func (c *Cache) count(k *Kernel) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.Cached {
		c.counts.Found++
	} else {
		c.counts.Compiled++
		c.counts.Compiling += k.Took.Compiler
	}
}

// Size is how many files the cache has in its folder, and their bytes.
func (c *Cache) Size() (files int, bytes int64) {
	for _, f := range c.files() {
		files, bytes = files+1, bytes+f.Size()
	}
	return files, bytes
}

// Writable reports why kernels cannot be kept, nil if they can. It makes the folder.
func (c *Cache) Writable() error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(c.Dir, unfinished)
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

// files are those that the cache wrote.
func (c *Cache) files() (files []os.FileInfo) {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && ours(e.Name()) {
			files = append(files, info)
		}
	}
	return files
}

// Report says in one line what is wrong with the cache and what to do, "" if all is well.
func (c *Cache) Report() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Err == nil {
		return ""
	}
	return fmt.Sprintf("compiled kernels are not kept, so every start compiles: %v: set VPPS_CACHE_DIR to a folder that can be written", c.Err)
}

func (c *Cache) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Err == nil {
		c.Err = err
		log.Infof("fallback", "compiled kernels are not kept: %v", err)
	}
}

// OpenCache returns the cache in VPPS_CACHE_DIR, or in the user's cache folder.
func OpenCache() *Cache {
	dir := env.String("VPPS_CACHE_DIR")
	if dir == "" {
		if env.Secure() {
			return &Cache{Err: errors.New("the process has rights that its user has not")}
		}
		base, err := os.UserCacheDir()
		if err != nil {
			return &Cache{Err: err}
		}
		dir = filepath.Join(base, "vpps")
	}
	return &Cache{Dir: dir, Max: 256 << 20}
}

const suffix = ".cubin"

// choiceSuffix ends the names, and so the keys, of choices (choice.go).
const choiceSuffix = ".plan"

// unfinished is the pattern of files that are being written.
const unfinished = "vpps-*.new"

func (c *Cache) path(key string) string {
	if !strings.HasSuffix(key, choiceSuffix) {
		key += suffix
	}
	return filepath.Join(c.Dir, key)
}

// ours tells files that the cache wrote from others in the same folder.
func ours(name string) bool {
	key, ok := strings.CutSuffix(name, suffix)
	if !ok {
		key, ok = strings.CutSuffix(name, choiceSuffix)
	}
	if ok {
		return len(key) == 2*sha256.Size && strings.Trim(key, "0123456789abcdef") == ""
	}
	match, _ := filepath.Match(unfinished, name)
	return match
}

func sumOf(key string, image []byte) []byte {
	h := sha256.New()
	h.Write([]byte(key))
	h.Write(image)
	return h.Sum(nil)
}

// get returns the machine code stored under key, nil if there is none or it is damaged.
func (c *Cache) get(key string) []byte {
	if c == nil || c.Dir == "" {
		return nil
	}
	b, err := readTrusted(c.path(key), c.Max)
	if errors.Is(err, errUntrusted) {
		return nil
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.note(err)
		}
		return nil
	}
	n := len(b) - sha256.Size
	if n < 0 || !bytes.Equal(b[n:], sumOf(key, b[:n])) {
		c.drop(key)
		return nil
	}
	now := time.Now()
	os.Chtimes(c.path(key), now, now) // recently used
	return b[:n]
}

func (c *Cache) drop(key string) {
	if c != nil && c.Dir != "" {
		os.Remove(c.path(key))
	}
}

// put stores an image; failures are kept in Err and change nothing else.
func (c *Cache) put(key string, image []byte) {
	if c == nil || c.Dir == "" || int64(len(image))+sha256.Size > c.Max {
		return
	}
	if err := c.write(key, image); err != nil {
		c.note(err)
	}
}

func (c *Cache) write(key string, image []byte) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	c.shrink(int64(len(image)) + sha256.Size)
	f, err := os.CreateTemp(c.Dir, unfinished)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is left of it once it is renamed
	_, err = f.Write(append(slices.Clone(image), sumOf(key, image)...))
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

// shrink removes the least recently used of the cache's files until more bytes fit.
func (c *Cache) shrink(more int64) {
	files := c.files()
	total := more
	for _, f := range files {
		total += f.Size()
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
