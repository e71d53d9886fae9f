package comm

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const long = 20 * time.Second

// makers make groups of either kind.
var makers = map[string]func(t *testing.T, size int, patience time.Duration) []Communicator{"local": newLocal, "peers": newPeers}

func newLocal(t *testing.T, size int, patience time.Duration) []Communicator {
	t.Helper()
	all, err := NewLocal(size, patience)
	require.NoError(t, err)
	return all
}

// mail is a transport within this process: a list of messages for each sender and receiver.
type mail struct {
	mu    sync.Mutex
	boxes map[[2]int][][]uint32
	told  string
}

type mailbox struct {
	*mail
	rank int
}

func (m mailbox) exchange(list []message, patience time.Duration) outcome {
	for began, first := time.Now(), true; ; first = false {
		m.mu.Lock()
		all := true
		for i := range list {
			x := &list[i]
			box := [2]int{x.peer, m.rank}
			if !x.receive {
				box = [2]int{m.rank, x.peer}
			}
			switch waiting := m.boxes[box]; {
			case x.done:
			case !x.receive:
				m.boxes[box] = append(waiting, slices.Clone(x.words))
				x.done = true
			case len(waiting) > 0:
				x.done = copy(x.words, waiting[0]) == len(waiting[0])
				m.boxes[box] = waiting[1:]
			}
			all = all && x.done
		}
		told := m.told
		m.mu.Unlock()
		switch {
		case all:
			return outcome{}
		case told != "":
			return outcome{told: told}
		case !first && time.Since(began) > patience:
			return outcome{late: true}
		}
		time.Sleep(10 * time.Microsecond)
	}
}

func (m mailbox) tell(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told == "" {
		m.told = text
	}
}

func newPeers(t *testing.T, size int, patience time.Duration) []Communicator {
	m := &mail{boxes: map[[2]int][][]uint32{}}
	all := make([]Communicator, size)
	for rank := range all {
		all[rank] = &peers{rank: rank, size: size, patience: patience, to: mailbox{m, rank}}
	}
	return all
}

// each runs do for some ranks side by side, and returns the errors by their order.
func each(ranks []Communicator, do func(c Communicator) error) []error {
	errs := make([]error, len(ranks))
	var done sync.WaitGroup
	for i, c := range ranks {
		done.Go(func() { errs[i] = do(c) })
	}
	done.Wait()
	return errs
}

func succeed(t *testing.T, ranks []Communicator, do func(c Communicator) error) {
	t.Helper()
	for rank, err := range each(ranks, do) {
		require.NoError(t, err, "rank %d", rank)
	}
}

func TestSumsAreTheSameBitsWhoeverArrivesFirst(t *testing.T) {
	for name, group := range makers {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 5} {
				for _, n := range []int{0, 1, 2, 7, 1000} {
					given := make([][]float32, size)
					want := make([]float32, n)
					for rank := range given {
						given[rank] = make([]float32, n)
						for i := range n {
							given[rank][i] = rand.Float32() * 1e3
							want[i] += given[rank][i] // in the order of ranks
						}
					}
					ranks := group(t, size, long)
					for range 20 {
						succeed(t, ranks, func(c Communicator) error {
							time.Sleep(rand.N(50 * time.Microsecond))
							x := slices.Clone(given[c.Rank()])
							if err := c.AllReduce(x); err != nil {
								return err
							}
							if !slices.Equal(x, want) {
								return errors.New("other sums")
							}
							return nil
						})
					}
				}
			}
		})
	}
}

// sumBF16 sums in bf16: on the host, or on devices where the communicator is of devices.
var sumBF16 = func(c Communicator, x []float32) error { return c.(OnHost).AllReduceBF16(x) }

// Sums in bf16 are those of rounded elements, rounded: whatever the number of elements, all ranks have the same bits. Of two
// ranks each connection has the same. Of more, one of devices may round between additions.
func TestSumsInBF16(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for name, group := range makers {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{2, 3} {
				for _, n := range []int{0, 1, 2, 3, 7, 1001} {
					ranks := group(t, size, long)
					given, sums, want := make([][]float32, size), make([][]float32, size), make([]float32, n)
					for rank := range given {
						for i := range n {
							x := rand.Float32()*2 - 1
							given[rank] = append(given[rank], x)
							want[i] += math.Float32frombits(bf16(x) << 16)
						}
					}
					roundBF16(want)
					succeed(t, ranks, func(c Communicator) error {
						sums[c.Rank()] = append([]float32{}, given[c.Rank()]...)
						return sumBF16(c, sums[c.Rank()])
					})
					for _, sum := range sums[1:] {
						require.Equal(t, sums[0], sum)
					}
					if _, onHost := ranks[0].(OnHost); onHost || size == 2 {
						require.Equal(t, want, sums[0])
						continue
					}
					for i := range want {
						require.InDelta(t, want[i], sums[0][i], 5*0x1p-8) // a sum below 2 is rounded by 2^-8, and two below 4 by 2^-7
					}
				}
			}
			ranks := group(t, 2, long)
			succeed(t, ranks, func(c Communicator) error {
				x := []float32{1, nan, inf, 1}
				if c.Rank() == 1 {
					x = []float32{2, 1, 1, math.MaxFloat32}
				}
				if err := sumBF16(c, x); err != nil {
					return err
				}
				if x[0] != 3 || x[1] == x[1] || x[2] != inf || x[3] != inf {
					return fmt.Errorf("%v", x)
				}
				return nil
			})
			for _, err := range each(group(t, 2, time.Second), func(c Communicator) error {
				if c.Rank() == 0 {
					return c.AllReduce(make([]float32, 2))
				}
				return sumBF16(c, make([]float32, 2))
			}) {
				require.ErrorIs(t, err, ErrDiffers)
				require.ErrorContains(t, err, "rank 0 is in all-reduce of 2 floats, rank 1 in all-reduce of 2 floats in bf16")
			}
		})
	}
}

func TestRoundingToBF16(t *testing.T) {
	for bits, want := range map[uint32]uint32{
		0x3f800000: 0x3f80, 0xbf800000: 0xbf80,
		0x3f808000: 0x3f80, 0x3f818000: 0x3f82, // ties: to even
		0x3f808001: 0x3f81, 0x3f807fff: 0x3f80,
		0x3fffffff: 0x4000,                     // the exponent grows
		0x7f7fffff: 0x7f80, 0x7f800000: 0x7f80, // infinite
		0x7f800001: 0x7fc0, 0xffffffff: 0xffff, // NaN
		0x00000001: 0, 0x80000000: 0x8000, 0x00018000: 0x0002,
	} {
		require.Equal(t, want, bf16(math.Float32frombits(bits)), "%#08x", bits)
	}
}

func TestBroadcastGatherAndBarrier(t *testing.T) {
	for name, group := range makers {
		t.Run(name, func(t *testing.T) {
			ranks := group(t, 3, long)
			for from := range ranks {
				succeed(t, ranks, func(c Communicator) error {
					x := []float32{float32(c.Rank()), 7}
					if err := c.Broadcast(x, from); err != nil {
						return err
					}
					if x[0] != float32(from) {
						return errors.New("of another rank")
					}
					mine := slices.Repeat([]uint32{uint32(c.Rank())}, c.Rank())
					all, err := c.AllGather(mine)
					if err != nil {
						return err
					}
					for rank, words := range all {
						if !slices.Equal(words, slices.Repeat([]uint32{uint32(rank)}, rank)) {
							return errors.New("other words")
						}
						clear(words) // is the caller's
					}
					return c.Barrier()
				})
			}
			require.Equal(t, 3, ranks[2].Size())
		})
	}
}

// What a rank gives is its own again when the call returns, though others may still be in it.
func TestMemoryIsTheCallersAgain(t *testing.T) {
	for name, group := range makers {
		t.Run(name, func(t *testing.T) {
			ranks := group(t, 3, long)
			succeed(t, ranks, func(c Communicator) error {
				x, w := make([]float32, 300), make([]uint32, 300)
				for turn := range 200 {
					for i := range x {
						x[i], w[i] = float32(turn), uint32(turn)
					}
					if err := c.AllReduce(x); err != nil {
						return err
					}
					if x[0] != float32(3*turn) || x[299] != float32(3*turn) {
						return errors.New("a sum of two turns")
					}
					all, err := c.AllGather(w)
					if err != nil {
						return err
					}
					if all[(c.Rank()+1)%3][299] != uint32(turn) {
						return errors.New("words of another turn")
					}
					if err := c.Broadcast(x, turn%3); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

func TestARankThatDoesNotArriveIsAnErrorOnAllOthers(t *testing.T) {
	for name, group := range makers {
		t.Run(name, func(t *testing.T) {
			for name, do := range calls {
				ranks := group(t, 4, 50*time.Millisecond)
				succeed(t, ranks, do)
				began := time.Now()
				for _, err := range each([]Communicator{ranks[0], ranks[2]}, do) {
					require.ErrorIs(t, err, ErrAbsent, name)
					require.ErrorContains(t, err, "ranks 1, 3 did not arrive within 50ms", name)
					require.ErrorContains(t, err, "call 2 of the group, "+name)
				}
				require.Less(t, time.Since(began), long)
				require.ErrorContains(t, do(ranks[1]), "did not arrive within 50ms", "%s: who comes late is told as well", name)
				require.ErrorContains(t, errors.Join(do(ranks[3]), ranks[3].Barrier()), "did not arrive within 50ms", "%s: and whoever calls later", name)
			}
			for range 2 { // what was under way is kept
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
		})
	}
}

var calls = map[string]func(c Communicator) error{
	"all-reduce of 4 floats":            func(c Communicator) error { return c.AllReduce(make([]float32, 4)) },
	"all-reduce of 4 floats in bf16":    func(c Communicator) error { return sumBF16(c, make([]float32, 4)) },
	"broadcast of 4 floats from rank 0": func(c Communicator) error { return c.Broadcast(make([]float32, 4), 0) },
	"all-gather":                        func(c Communicator) error { _, err := c.AllGather([]uint32{1}); return err },
	"barrier":                           Communicator.Barrier,
}

func TestAbortWakesEveryone(t *testing.T) {
	for name, group := range makers {
		t.Run(name, func(t *testing.T) {
			for name, do := range calls {
				ranks := group(t, 3, long)
				errs := each(ranks, func(c Communicator) error {
					if c.Rank() == 1 {
						time.Sleep(10 * time.Millisecond)
						c.Abort(errors.New("out of paper"))
						c.Abort(errors.New("the second reason"))
					}
					return do(c)
				})
				for _, err := range errs {
					require.ErrorIs(t, err, ErrAborted, name)
					require.EqualError(t, err, "rank 1 has aborted: out of paper", name)
				}
			}
		})
	}
}

func TestDifferentCallsAreAnErrorOnAll(t *testing.T) {
	for name, group := range makers {
		t.Run(name, func(t *testing.T) {
			ranks := group(t, 2, long)
			for _, err := range each(ranks, func(c Communicator) error { return c.AllReduce(make([]float32, 3+c.Rank())) }) {
				require.ErrorIs(t, err, ErrDiffers)
				require.ErrorContains(t, err, "call 1 of the group: rank 0 is in all-reduce of 3 floats, rank 1 in all-reduce of 4 floats")
			}
			ranks = group(t, 2, long)
			for _, err := range each(ranks, func(c Communicator) error {
				if c.Rank() == 0 {
					return c.Barrier()
				}
				return c.Broadcast(nil, 1)
			}) {
				require.ErrorIs(t, err, ErrDiffers)
			}
		})
	}
}

func TestWrongArguments(t *testing.T) {
	for _, size := range []int{-1, 0, mostRanks + 1} {
		_, err := NewLocal(size, long)
		require.ErrorIs(t, err, ErrArgument)
	}
	_, err := NewLocal(2, 0)
	require.ErrorIs(t, err, ErrArgument)
	ranks := newLocal(t, 2, long)
	for _, from := range []int{-1, 2} {
		require.ErrorIs(t, ranks[0].Broadcast(nil, from), ErrArgument)
	}
	waiting := make(chan error)
	go func() { waiting <- ranks[0].Barrier() }()
	for {
		g := ranks[0].(*local).group
		g.mu.Lock()
		there := g.now.arrived == 1
		g.mu.Unlock()
		if there {
			break
		}
		time.Sleep(time.Millisecond)
	}
	require.ErrorIs(t, ranks[0].Barrier(), ErrArgument, "two calls of a rank at once")
	require.NoError(t, ranks[1].Barrier(), "which breaks nothing")
	require.NoError(t, <-waiting)
}

// Ranks may give up just when the last one arrives: then either all succeed or all are told.
func TestAllOrNobodyAtTheDeadline(t *testing.T) {
	for range 300 {
		ranks := newLocal(t, 3, time.Millisecond)
		errs := each(ranks, func(c Communicator) error {
			if c.Rank() == 2 {
				time.Sleep(time.Millisecond - 100*time.Microsecond + rand.N(200*time.Microsecond))
			}
			return c.AllReduce(make([]float32, 8))
		})
		for _, err := range errs {
			require.Equal(t, errs[0], err)
		}
	}
}
