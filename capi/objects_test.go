package main

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist"
)

func TestAnObjectIsFoundByItsNumberAndTypeOnly(t *testing.T) {
	var r registry
	_, err := r.acquire(numberMark, graphKind)
	require.ErrorIs(t, err, persist.ErrArgument)
	n, err := r.add(graphKind, "a graph")
	require.NoError(t, err)
	s, err := r.acquire(n, graphKind)
	require.NoError(t, err)
	require.Equal(t, "a graph", s.object)
	s.release()

	_, err = r.acquire(n, trainerKind)
	require.ErrorContains(t, err, "this is no trainer but another object, of type graph")
	_, err = r.acquire(0, engineKind)
	require.ErrorContains(t, err, "the engine is NULL")
	for bit := range 64 {
		_, err = r.acquire(n^1<<bit, graphKind)
		require.ErrorIs(t, err, persist.ErrArgument, "bit %d", bit)
	}
}

func TestNumbersAreNeverGivenOutAgain(t *testing.T) {
	var r registry
	seen := map[number]bool{}
	for range 3 * chunkSlots {
		n, err := r.add(graphKind, "a graph")
		require.NoError(t, err)
		require.False(t, seen[n])
		seen[n] = true
		s, err := r.freeze(n, graphKind)
		require.NoError(t, err)
		r.remove(n, s)
		for old := range seen {
			_, err = r.acquire(old, graphKind)
			require.ErrorContains(t, err, "it was destroyed, or never made")
		}
	}
	require.EqualValues(t, 1, r.used)

	// After a slot's last generation another slot is taken.
	r.at(0).state.Store(stateOf(1<<generationBits-1, 0))
	last, err := r.add(graphKind, "a graph")
	require.NoError(t, err)
	require.EqualValues(t, 1<<generationBits-1, last.generation())
	s, err := r.freeze(last, graphKind)
	require.NoError(t, err)
	r.remove(last, s)
	next, err := r.add(graphKind, "a graph")
	require.NoError(t, err)
	require.EqualValues(t, 1, next.index())
}

func TestAnObjectThatACallUsesIsNotDestroyed(t *testing.T) {
	var r registry
	n, err := r.add(handleKind, "a handle")
	require.NoError(t, err)
	call, err := r.acquire(n, handleKind)
	require.NoError(t, err)
	_, err = r.freeze(n, handleKind)
	require.ErrorIs(t, err, persist.ErrState)
	require.ErrorContains(t, err, "a call of another thread uses the handle")
	call.release()

	// A call that comes while it is decided whether the object is destroyed waits for that.
	s, err := r.freeze(n, handleKind)
	require.NoError(t, err)
	found := make(chan error)
	go func() {
		s, err := r.acquire(n, handleKind)
		if err == nil {
			s.release()
		}
		found <- err
	}()
	s.thaw()
	require.NoError(t, <-found)
}

// Whoever finds an object finds the one of that number, and one of those who destroy it does.
func TestManyFindAndDestroyAtOnce(t *testing.T) {
	type object struct {
		number number
		gone   atomic.Bool
	}
	var r registry
	var some [16]atomic.Uint64
	var all sync.WaitGroup
	var made, destroyed atomic.Int64
	for k := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := range 20000 {
				at := &some[(i*7+k*5)%len(some)]
				n := number(at.Load())
				if s, err := r.acquire(n, graphKind); err == nil {
					o := s.object.(*object)
					if o.number != n || o.gone.Load() {
						t.Errorf("object %x under number %x, gone: %v", o.number, n, o.gone.Load())
					}
					s.release()
				}
				switch s, err := r.freeze(n, graphKind); {
				case err == nil:
					s.object.(*object).gone.Store(true)
					r.remove(n, s)
					destroyed.Add(1)
				case errors.Is(err, persist.ErrState):
				default: // another one was faster: make one in its place
					o := &object{}
					made.Add(1)
					m, err := r.add(graphKind, o)
					if err != nil {
						t.Error(err)
						return
					}
					o.number = m
					at.Store(uint64(m))
				}
			}
		}()
	}
	all.Wait()
	require.Positive(t, destroyed.Load())
	require.LessOrEqual(t, destroyed.Load(), made.Load())
}
