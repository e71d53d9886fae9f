package persist

import (
	"errors"
	"fmt"
	"math"

	"libvpps/persist/isa"
)

// Notices: what a rank tells all others at the beginning of a call of the group.

// groupCall is a call that all ranks make together.
type groupCall uint32

const (
	joining groupCall = iota // takes part with nothing in whatever the others call
	synchronising
	stepping
	summingLoss
	groupCalls
)

func (c groupCall) String() string {
	return [...]string{"joining", "setting parameters or trainers", "training a batch", "summing the loss"}[c]
}

// failure is whether a rank cannot make its call.
type failure uint32

const (
	noFailure failure = iota
	anyFailure
	numericFailure // its loss or gradients are not finite
	failures
)

// notice is the message; a rank that fails tells only why.
type notice struct {
	call      groupCall
	failed    failure
	why       string
	number    float32 // stepping: the count of examples; summingLoss: the loss
	there     bool    // summingLoss: there is a loss
	trainer   uint32  // stepping: by the order of the engine's trainers
	options   TrainerOptions
	gradients []pendingRows // stepping: for each of the trainer's parameters
}

// noticeMark begins a notice and tells versions of the layout apart.
const noticeMark = 0x56505001

// wholeMark takes the place of a count of rows.
const wholeMark = math.MaxUint32

// words is the notice as words: mark, call, failed, number, there, the text, the trainer and its options, then for each
// gradient a count of rows and the rows.
func (n *notice) words() []uint32 {
	o := &n.options
	w := []uint32{noticeMark, uint32(n.call), uint32(n.failed), math.Float32bits(n.number), oneIf(n.there)}
	w = appendText(w, n.why)
	w = append(w, n.trainer, uint32(o.Rule), oneIf(o.Clipping), oneIf(o.Sparse), o.Collection)
	for _, x := range o.numbers() {
		w = append(w, math.Float32bits(*x))
	}
	w = append(w, uint32(len(n.gradients)))
	for _, g := range n.gradients {
		if g.whole {
			w = append(w, wholeMark)
			continue
		}
		w = append(append(w, uint32(len(g.rows))), g.rows...)
	}
	return w
}

func oneIf(x bool) uint32 {
	if x {
		return 1
	}
	return 0
}

// appendText appends a string: its length in bytes, and four bytes a word.
func appendText(w []uint32, s string) []uint32 {
	w = append(w, uint32(len(s)))
	for at := 0; at < len(s); at += 4 {
		x := uint32(0)
		for k := range min(4, len(s)-at) {
			x |= uint32(s[at+k]) << (8 * k)
		}
		w = append(w, x)
	}
	return w
}

// wordReader reads words that another rank has sent.
type wordReader struct {
	rest []uint32
	bad  bool // there were fewer, or others than can be
}

func (r *wordReader) word() uint32 {
	if len(r.rest) == 0 {
		r.bad = true
		return 0
	}
	w := r.rest[0]
	r.rest = r.rest[1:]
	return w
}

// below reads a word that is less than a bound.
func (r *wordReader) below(bound uint32) uint32 {
	w := r.word()
	if w >= bound {
		r.bad = true
		return 0
	}
	return w
}

func (r *wordReader) float() float32 { return math.Float32frombits(r.word()) }

// some reads n words.
func (r *wordReader) some(n uint32) []uint32 {
	if uint64(n) > uint64(len(r.rest)) {
		r.bad = true
		return nil
	}
	w := r.rest[:n]
	r.rest = r.rest[n:]
	return w
}

func (r *wordReader) text() string {
	n := r.word()
	words := r.some(uint32((uint64(n) + 3) / 4))
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return string(b[:min(int(n), len(b))])
}

// errNotice is of words that are no notice.
var errNotice = errors.New("it sends no notice that this version knows: start all ranks with the same library")

func readNotice(words []uint32) (n notice, err error) {
	r := wordReader{rest: words}
	if r.word() != noticeMark {
		return n, errNotice
	}
	n.call, n.failed = groupCall(r.below(uint32(groupCalls))), failure(r.below(uint32(failures)))
	n.number, n.there = r.float(), r.below(2) == 1
	n.why = r.text()
	o := &n.options
	n.trainer, o.Rule = r.word(), isa.Rule(r.below(uint32(isa.Rules)))
	o.Clipping, o.Sparse, o.Collection = r.below(2) == 1, r.below(2) == 1, r.word()
	for _, x := range o.numbers() {
		*x = r.float()
	}
	for range r.word() {
		if r.bad {
			return n, errNotice
		}
		if count := r.word(); count == wholeMark {
			n.gradients = append(n.gradients, pendingRows{whole: true})
		} else {
			n.gradients = append(n.gradients, pendingRows{rows: r.some(count)})
		}
	}
	if r.bad || len(r.rest) > 0 {
		return n, errNotice
	}
	return n, nil
}

// readNotices reads those of all ranks.
func readNotices(words [][]uint32) ([]notice, error) {
	all := make([]notice, len(words))
	for rank, w := range words {
		var err error
		if all[rank], err = readNotice(w); err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	return all, nil
}

func isNumeric(err error) bool { return errors.Is(err, ErrNumeric) }
