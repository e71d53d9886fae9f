package schedule

import (
	"math"

	"libvpps/persist/isa"
)

// Signatures: the words of an instruction besides its list, interned so that equal
// ones have equal numbers. The table is open-addressed over one flat slice of words.

// RawSig marks an item that is a whole instruction.
const RawSig = 0

// Signatures are the signatures of a schedule, by their numbers.
type Signatures struct {
	words []uint32 // of all signatures, one after another
	start []uint32 // of signature i; len = count+1
	costs []int32  // of one item
	Width []uint8  // words of one item
	Fuses []fusing
	slots []uint32 // hash table: signature number, plus past
	buf   []uint32 // the one being made

	// What these tables have up to past is of scripts before, and does not count: small scripts would spend their time
	// with clearing them.
	past   uint32
	recent [256]recentSig      // by a few bits of the words: the one last found there
	maps   [2 * isa.Fns]mapSig // by function and Acc: the Map last found there
}

// recentSig is a signature of few words but for the second, which is the length; the rest are 0. The number is plus past.
type recentSig struct{ head, a, b, c, d, e, number uint32 }

// mapSig is a signature of a Map with what it depends on besides function and Acc. The number is plus past.
type mapSig struct{ segs, n, p, q, number uint32 }

func (t *Signatures) reset() {
	if n := uint32(len(t.start)); t.past > math.MaxUint32-n-mostSignatures {
		t.past = 0
		clear(t.slots)
		clear(t.recent[:])
		clear(t.maps[:])
	} else {
		t.past += n
	}
	t.words = append(t.words[:0], 0)
	t.start = append(t.start[:0], 0, 1)
	t.costs = append(t.costs[:0], 1)
	t.Width = append(t.Width[:0], 0)
	t.Fuses = append(t.Fuses[:0], unfused)
	if len(t.slots) == 0 {
		t.slots = make([]uint32, 1<<12)
	}
}

// mostSignatures is more than a script has.
const mostSignatures = 1 << 30

// Count is one more than the signatures that there are.
func (t *Signatures) Count() int { return len(t.start) }

// Put returns the number of a signature with what its items cost, in place of what their elements say.
func (t *Signatures) Put(words []uint32, cost int32) uint32 {
	t.buf = append(t.buf[:0], words...)
	n := t.Intern(0)
	t.costs[n] = cost
	return n
}

// Of returns the words of signature i.
func (t *Signatures) Of(i uint32) []uint32 { return t.words[t.start[i]:t.start[i+1]] }

// Cost is what one item costs.
func (t *Signatures) Cost(i uint32) int32 { return t.costs[i] }

// Head begins a signature in buf.
func (t *Signatures) Head(op isa.Opcode, fn uint8, flags uint32, fixed ...uint32) {
	t.buf = append(append(t.buf[:0], FirstWord(op, fn, flags), 0), fixed...)
}

// FirstWord is the first word of an instruction.
func FirstWord(op isa.Opcode, fn uint8, flags uint32) uint32 {
	return uint32(op) | uint32(fn)<<8 | flags<<16
}

// Short returns the number of a signature of n words and the length, the words in registers; elements
// is the work of one item. Neighbouring nodes are alike: most signatures are those found last.
func (t *Signatures) Short(n, elements int, head, a, b, c, d, e uint32) uint32 {
	r := &t.recent[(head^head>>7^head>>13^b*7^b>>6^a>>3)%uint32(len(t.recent))]
	if r.number <= t.past || r.head != head || r.a != a || r.b != b || r.c != c || r.d != d || r.e != e {
		words := [...]uint32{head, 0, a, b, c, d, e}
		t.buf = append(t.buf[:0], words[:n+1]...)
		*r = recentSig{head, a, b, c, d, e, t.Intern(elements) + t.past}
	}
	return r.number - t.past
}

// ofMap is the signature of a Map; of its flags there is only Acc.
func (t *Signatures) ofMap(fn isa.Fn, flags, segs uint32, n int, p, q float32) uint32 {
	m := &t.maps[2*fn+isa.Fn(flags&isa.Acc)]
	if m.number <= t.past || m.segs != segs || m.n != uint32(n) || m.p != isa.Float(p) || m.q != isa.Float(q) {
		*m = mapSig{segs, uint32(n), isa.Float(p), isa.Float(q), t.Short(5, n, FirstWord(isa.Map, uint8(fn), flags), segs, uint32(n), isa.Float(p), isa.Float(q), 0) + t.past}
	}
	return m.number - t.past
}

// Intern returns the number of the signature in buf.
func (t *Signatures) Intern(elements int) uint32 {
	mask := uint32(len(t.slots) - 1)
	for i := hash(t.buf) & mask; ; i = (i + 1) & mask {
		s := t.slots[i]
		if s <= t.past {
			return t.add(i, elements)
		}
		if s -= t.past; equal(t.Of(s), t.buf) {
			return s
		}
	}
}

func (t *Signatures) add(slot uint32, elements int) uint32 {
	n := uint32(len(t.start) - 1)
	t.words = append(t.words, t.buf...)
	t.start = append(t.start, uint32(len(t.words)))
	t.costs = append(t.costs, int32(min(1+elements>>8, 1<<20)))
	t.Width = append(t.Width, uint8(isa.ItemWords(isa.Opcode(t.buf[0]), uint8(t.buf[0]>>8))))
	t.Fuses = append(t.Fuses, fusingOf(t.buf))
	t.slots[slot] = n + t.past
	if int(n)*2 > len(t.slots) {
		t.rehash()
	}
	return n
}

// hash takes two words at a time.
func hash(words []uint32) uint32 {
	h := uint64(len(words))
	for ; len(words) >= 2; words = words[2:] {
		h = (h ^ uint64(words[0]) ^ uint64(words[1])<<32) * 0x9E3779B97F4A7C15
		h ^= h >> 32
	}
	if len(words) > 0 {
		h = (h ^ uint64(words[0])) * 0x9E3779B97F4A7C15
		h ^= h >> 32
	}
	return uint32(h)
}

func (t *Signatures) rehash() {
	t.slots = make([]uint32, 2*len(t.slots))
	mask := uint32(len(t.slots) - 1)
	for n := uint32(1); int(n) < len(t.start)-1; n++ {
		i := hash(t.Of(n)) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = n + t.past
	}
}

func equal(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// AppendFew is append for a handful of words, which the call of a copy would cost more than.
func AppendFew(to, words []uint32) []uint32 {
	n := len(to)
	if cap(to)-n < len(words) {
		return append(to, words...)
	}
	to = to[:n+len(words)]
	for i, w := range words {
		to[n+i] = w
	}
	return to
}
