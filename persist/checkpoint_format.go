package persist

// The file of a checkpoint: a header and sections, each with its checksum. docs/CHECKPOINT.md is its description.

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"os"
	"syscall"
	"unsafe"
)

const (
	checkpointMagic   = "vppsckpt"
	checkpointVersion = 1
	headerBytes       = 32
	sectionHead       = 16
	sectionBytes      = sectionHead + 4 // head and checksum
	mandatory         = 1               // a reader that does not know the section must refuse the file
)

// sectionKind tells what a section holds. Sections that a reader does not know and need not know are skipped.
type sectionKind uint32

const (
	engineSection sectionKind = iota + 1
	collectionSection
	parameterSection
	trainerSection
	handleSection
	blobSection
	planSection // what plans have learned: reserved
	sectionKinds
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sectionWriter writes the sections of a checkpoint. The first error stays.
type sectionWriter struct {
	to       *bufio.Writer
	sum      hash.Hash32
	err      error
	sections uint32
	bytes    uint64 // written so far, header included
	scratch  [8]byte
}

func newSectionWriter(to io.Writer) *sectionWriter {
	w := &sectionWriter{to: bufio.NewWriterSize(to, 1<<20), sum: crc32.New(castagnoli), bytes: headerBytes}
	_, w.err = w.to.Write(make([]byte, headerBytes)) // known at the end
	return w
}

// section writes one whose payload has a known length.
func (w *sectionWriter) section(k sectionKind, flags uint32, length uint64, payload func()) {
	w.sum.Reset()
	w.u32(uint32(k))
	w.u32(flags)
	w.u64(length)
	before := w.bytes
	payload()
	if w.err == nil && w.bytes-before != length {
		w.err = fmt.Errorf("internal: a section of %d bytes, not %d", w.bytes-before, length)
	}
	w.u32(w.sum.Sum32())
	w.sections++
}

func (w *sectionWriter) raw(b []byte) {
	if w.err == nil {
		_, w.err = w.to.Write(b)
		w.sum.Write(b)
		w.bytes += uint64(len(b))
	}
}

func (w *sectionWriter) u32(x uint32) {
	binary.LittleEndian.PutUint32(w.scratch[:], x)
	w.raw(w.scratch[:4])
}

func (w *sectionWriter) u64(x uint64) {
	binary.LittleEndian.PutUint64(w.scratch[:], x)
	w.raw(w.scratch[:8])
}

func (w *sectionWriter) f32(x float32) { w.u32(math.Float32bits(x)) }

func (w *sectionWriter) text(s string) {
	w.u32(uint32(len(s)))
	w.raw([]byte(s))
}

// floats are the machine's, whose byte order is the file's.
func (w *sectionWriter) floats(v []float32) { w.raw(bytesOf(v)) }

// header is the file's, once all sections are written.
func (w *sectionWriter) header() ([]byte, error) {
	if w.err == nil {
		w.err = w.to.Flush()
	}
	h := append(make([]byte, 0, headerBytes), checkpointMagic...)
	h = binary.LittleEndian.AppendUint32(h, checkpointVersion)
	h = binary.LittleEndian.AppendUint32(h, w.sections)
	h = binary.LittleEndian.AppendUint64(h, w.bytes)
	h = binary.LittleEndian.AppendUint32(h, 0)
	return binary.LittleEndian.AppendUint32(h, crc32.Checksum(h, castagnoli)), w.err
}

// Checkpoint is a file that was read once: its checksums are right.
type Checkpoint struct {
	name     string
	file     *os.File
	sections []section
}

// section is where the payload of a section lies.
type section struct {
	kind   sectionKind
	at     int64
	length uint64
}

// OpenCheckpoint reads a checkpoint through and keeps the file open.
func OpenCheckpoint(name string) (*Checkpoint, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, wrong(ErrFile, "cannot read the checkpoint %s: %v", name, err)
	}
	c := &Checkpoint{name: name, file: f}
	if err := c.index(); err != nil {
		f.Close()
		return nil, err
	}
	return c, nil
}

// Close closes the file.
func (c *Checkpoint) Close() { c.file.Close() }

// damaged is an error of the file at a byte.
func (c *Checkpoint) damaged(at int64, format string, a ...any) error {
	return wrong(ErrFile, "%s, byte %d: %s", c.name, at, fmt.Sprintf(format, a...))
}

// index checks header and checksums, and finds the sections.
func (c *Checkpoint) index() error {
	stat, err := c.file.Stat()
	if err != nil || !stat.Mode().IsRegular() {
		return wrong(ErrFile, "cannot read the checkpoint %s: it is no ordinary file", c.name)
	}
	size := uint64(stat.Size())
	var h [headerBytes]byte
	if _, err := io.ReadFull(c.file, h[:]); err != nil || string(h[:8]) != checkpointMagic {
		return c.damaged(0, "this is no checkpoint")
	}
	if crc32.Checksum(h[:28], castagnoli) != binary.LittleEndian.Uint32(h[28:]) {
		return c.damaged(0, "the header's checksum is wrong: the file is damaged")
	}
	if v := binary.LittleEndian.Uint32(h[8:]); v != checkpointVersion {
		return c.damaged(8, "a checkpoint of version %d, this library reads %d: take a newer library", v, checkpointVersion)
	}
	if n := binary.LittleEndian.Uint64(h[16:]); n != size {
		return c.damaged(16, "the file has %d bytes, not %d: it is damaged", size, n)
	}
	count := binary.LittleEndian.Uint32(h[12:])
	if uint64(count) > size/sectionBytes {
		return c.damaged(12, "%d sections in %d bytes: the file is damaged", count, size)
	}
	from, at := bufio.NewReaderSize(c.file, int(min(size, 1<<20))), int64(headerBytes)
	for range count {
		s, err := c.readSection(from, at, size)
		if err != nil {
			return err
		}
		c.sections = append(c.sections, s)
		at = s.at + int64(s.length) + 4
	}
	if uint64(at) != size {
		return c.damaged(at, "%d bytes after the last section: the file is damaged", size-uint64(at))
	}
	return nil
}

// readSection reads a section that begins at a byte, and checks it.
func (c *Checkpoint) readSection(from *bufio.Reader, at int64, size uint64) (s section, err error) {
	var head [sectionHead]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return s, c.damaged(at, "the file ends in a section's head: %v", err)
	}
	kind, flags := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:])
	s = section{sectionKind(kind), at + sectionHead, binary.LittleEndian.Uint64(head[8:])}
	if left := size - uint64(s.at); s.length > left || left-s.length < 4 {
		return s, c.damaged(at, "a section of %d bytes, but %d are left: the file is damaged", s.length, left)
	}
	sum := crc32.New(castagnoli)
	sum.Write(head[:])
	if _, err := io.CopyN(sum, from, int64(s.length)); err != nil {
		return s, c.damaged(s.at, "cannot be read: %v", err)
	}
	var want [4]byte
	if _, err := io.ReadFull(from, want[:]); err != nil || binary.LittleEndian.Uint32(want[:]) != sum.Sum32() {
		return s, c.damaged(at, "a section's checksum is wrong: the file is damaged")
	}
	if (kind == 0 || kind >= uint32(sectionKinds)) && flags&mandatory != 0 {
		return s, c.damaged(at, "a section of kind %d that must be understood: take a newer library", kind)
	}
	return s, nil
}

// errShort is of a section that ends before what it must have.
var errShort = errors.New("it ends too early")

// sectionReader reads a payload. The first error stays; what is read after it is 0.
type sectionReader struct {
	from *bufio.Reader
	left uint64
	err  error
}

func (c *Checkpoint) read(s section) *sectionReader {
	return &sectionReader{from: bufio.NewReaderSize(io.NewSectionReader(c.file, s.at, int64(s.length)), int(min(s.length, 1<<16))), left: s.length}
}

func (r *sectionReader) raw(b []byte) {
	if r.err == nil && uint64(len(b)) > r.left {
		r.err = errShort
	}
	if r.err == nil {
		_, r.err = io.ReadFull(r.from, b)
		r.left -= uint64(len(b))
	}
	if r.err != nil {
		clear(b)
	}
}

func (r *sectionReader) u32() uint32 {
	var b [4]byte
	r.raw(b[:])
	return binary.LittleEndian.Uint32(b[:])
}

func (r *sectionReader) u64() uint64 {
	var b [8]byte
	r.raw(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func (r *sectionReader) f32() float32 { return math.Float32frombits(r.u32()) }
func (r *sectionReader) flag() bool   { return r.u32() != 0 }

// count is a number of things of some bytes each that are still to come.
func (r *sectionReader) count(bytes uint64) uint32 {
	n := r.u32()
	if r.err == nil && uint64(n) > r.left/bytes {
		r.err = errShort
	}
	if r.err != nil {
		return 0
	}
	return n
}

func (r *sectionReader) text() string {
	b := make([]byte, r.count(1))
	r.raw(b)
	return string(b)
}

func (r *sectionReader) words() []uint32 {
	v := make([]uint32, r.count(4))
	r.raw(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v)))
	return v
}

// end fails unless all was read.
func (r *sectionReader) end() error {
	if r.err == nil && r.left > 0 {
		return fmt.Errorf("%d bytes too many", r.left)
	}
	return r.err
}
