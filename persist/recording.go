package persist

import (
	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/persist/script"
)

// Recordings: the memory of graphs, which another graph takes over.

// recording is the memory of a graph: its nodes and where their values are. When the graph is
// closed or cleared, another takes it over as soon as no batch in flight is made of it.
type recording struct {
	job       *job // the batch that a worker makes of it
	flights   int  // batches made of it whose results are not read yet
	retired   bool // no graph has it any more
	wire      bridge.Graph
	expanded  *bridge.Expanded // once a composite node was seen: it is in expansion
	expansion bridge.Expanded
	state     script.State
	words     [InFlight + 2][]uint32 // the inputs of as many calls: of unread batches, at most, and of the present one
	turn      int                    // the latest call's among them
	params    []paramNode
	marks     []watermark
	keep      []uint32 // nodes whose values the next fb keeps
	before    savepoint
	cells     cells.Program // of the latest call that found them
	matched   int           // the number of nodes that cells covers, counted from the first; 0: it begins with another
	stale     bool          // one of params has changed

	destroyed uint64 // the engine's, when all parameters that nodes mention were there
}

// retire keeps a recording for another graph, as soon as no batch in flight is made of it.
func (e *Engine) retire(r *recording) {
	r.retired = true
	e.recycle(r)
}

// recycle keeps a recording that no graph has, for the next one. It keeps as many as batches in flight can use.
func (e *Engine) recycle(r *recording) {
	if r.retired && r.flights == 0 && len(e.recordings) <= InFlight+1 {
		e.recordings = append(e.recordings, r)
	}
}

// pin keeps a batch's nodes as they are; nil: they are gone.
func (r *recording) pin() {
	if r != nil {
		r.flights++
	}
}

// unpin releases them.
func (e *Engine) unpin(r *recording) {
	if r != nil {
		r.flights--
		e.recycle(r)
	}
}

// newRecording is an empty recording, in memory of an old one if there is one that is free: the last one, what is in
// the processor's cache.
func (e *Engine) newRecording() *recording {
	n := len(e.recordings) - 1
	if n < 0 {
		return &recording{destroyed: e.destroyed}
	}
	r := e.recordings[n]
	e.recordings = e.recordings[:n]
	r.reset()
	r.destroyed = e.destroyed
	return r
}

// reset empties the recording.
func (r *recording) reset() {
	r.job, r.expanded, r.retired = nil, nil, false
	r.wire.Reset()
	r.matched = 0
	r.state.Truncate(0)
	r.params, r.marks, r.keep = r.params[:0], r.marks[:0], r.keep[:0]
	r.words[r.turn] = r.words[r.turn][:0]
}

// inputs are the input words of the latest call.
func (r *recording) inputs() []uint32 { return r.words[r.turn] }

// ir is the graph that is lowered, and the map of nodes to it.
func (r *recording) ir() *bridge.Graph {
	if r.expanded != nil {
		return &r.expanded.Graph
	}
	return &r.wire
}

func (r *recording) at(node uint32) uint32 {
	if r.expanded != nil {
		return r.expanded.At[node]
	}
	return node
}
