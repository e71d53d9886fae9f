package comm

import (
	"fmt"
	"time"
)

// mostRanks bounds groups: a round takes memory and time for each rank.
const mostRanks = 1024

// NewLocal makes a group of ranks in this process, and returns the communicator of each. A call waits for the other
// ranks for as long as patience at most.
func NewLocal(size int, patience time.Duration) ([]Communicator, error) {
	switch {
	case size < 1 || size > mostRanks:
		return nil, &kindError{ErrArgument, fmt.Sprintf("a group of %d ranks: it has 1 to %d", size, mostRanks)}
	case patience <= 0:
		return nil, &kindError{ErrArgument, fmt.Sprintf("a group that waits %v for a rank: the time must be above 0", patience)}
	}
	g := newGroup(size, patience)
	all := make([]Communicator, size)
	for rank := range all {
		all[rank] = &local{g, rank}
	}
	return all, nil
}

// local is a rank of a group in this process.
type local struct {
	group *group
	rank  int
}

func (c *local) Rank() int { return c.rank }
func (c *local) Size() int { return c.group.size }

// AllReduce has each rank add up a share of the elements, in the order of ranks, and write the sums to all. Nobody
// else touches that share, so no rank needs memory besides its own.
func (c *local) AllReduce(x []float32) error { return c.sum(allReduce, x) }

// AllReduceBF16 has nothing to send: it only rounds.
func (c *local) AllReduceBF16(x []float32) error {
	roundBF16(x)
	err := c.sum(allReduceBF16, x)
	roundBF16(x)
	return err
}

func (c *local) sum(k kind, x []float32) error {
	r, err := c.group.meet(c.rank, part{call: call{k, len(x), 0}, floats: x})
	if err != nil {
		return err
	}
	defer r.leave()
	lo, hi := share(len(x), c.rank, c.Size()), share(len(x), c.rank+1, c.Size())
	sum := r.parts[0].floats[lo:hi]
	for _, p := range r.parts[1:] {
		for i, v := range p.floats[lo:hi] {
			sum[i] += v
		}
	}
	for _, p := range r.parts[1:] {
		copy(p.floats[lo:hi], sum)
	}
	return nil
}

// share is where a rank's share of n elements begins.
func share(n, rank, size int) int { return int(uint64(n) * uint64(rank) / uint64(size)) }

func (c *local) Broadcast(x []float32, from int) error {
	if from < 0 || from >= c.Size() {
		return &kindError{ErrArgument, fmt.Sprintf("broadcast from rank %d of %d", from, c.Size())}
	}
	r, err := c.group.meet(c.rank, part{call: call{broadcast, len(x), from}, floats: x})
	if err != nil {
		return err
	}
	defer r.leave()
	if c.rank != from {
		copy(x, r.parts[from].floats)
	}
	return nil
}

func (c *local) AllGather(mine []uint32) ([][]uint32, error) {
	r, err := c.group.meet(c.rank, part{call: call{kind: allGather}, words: mine})
	if err != nil {
		return nil, err
	}
	defer r.leave()
	all := make([][]uint32, len(r.parts))
	for rank, p := range r.parts {
		all[rank] = append([]uint32{}, p.words...)
	}
	return all, nil
}

func (c *local) Barrier() error {
	_, err := c.group.meet(c.rank, part{call: call{kind: barrier}})
	return err
}

func (c *local) Abort(why error) {
	c.group.end(abortedBy(c.rank, why.Error()))
}
