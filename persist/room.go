package persist

// Room in Go's heap. Where the heap cannot grow, Go's runtime ends the process. So before work whose memory grows with
// what a caller brings, the engine estimates what the heap will need at most, and asks the system whether there is as
// much: if not, the call fails and nothing has changed. It asks only if it has not asked for as much before.

import (
	"runtime/metrics"

	"libvpps/bridge"
	"libvpps/jit/kernel"
)

// room is how much the heap is known to have.
type room struct {
	proven  uint64 // bytes
	samples []metrics.Sample
}

const (
	leastRoom = 4 << 20   // work that takes less is not asked for
	slackRoom = 256 << 20 // for the arenas that the heap grows by
	startRoom = 320 << 20 // for the runtime's threads, which come as they are needed: stacks, and arenas of malloc
)

// start proves what an engine takes however small a model is. Only the least of it counts as proven: what is left later
// the host may have taken.
func (r *room) start() error {
	err := r.prove(startRoom, "an engine")
	r.proven = min(r.proven, leastRoom)
	return err
}

// prove reports an error if the heap cannot have these bytes; the error says what needs them.
func (r *room) prove(bytes uint64, what string) error {
	if bytes <= r.proven {
		return nil
	}
	if missing := bytes - min(r.mapped(), bytes); !kernel.Available(missing + slackRoom) {
		return wrong(ErrMemory, "%s may take %d MiB of the host's memory, of which %d MiB are not there (ulimit -v and ulimit -d bound them): use smaller batches or a smaller model", what, bytes>>20, missing>>20)
	}
	r.proven = bytes
	return nil
}

// mapped is how much the heap has, used or not: it gives no address space back.
func (r *room) mapped() (bytes uint64) {
	if r.samples == nil {
		for _, name := range []string{"objects", "unused", "free", "released"} {
			r.samples = append(r.samples, metrics.Sample{Name: "/memory/classes/heap/" + name + ":bytes"})
		}
	}
	metrics.Read(r.samples)
	for i := range r.samples {
		bytes += r.samples[i].Value.Uint64()
	}
	return bytes
}

// Bytes of the heap, with what the collector has not freed yet: about twice of what graphs of a million nodes took.
const (
	paramBytes  = 1 << 10 // a parameter, in the engine and in the batches in flight
	wordBytes   = 48      // a word of nodes, as a recording, before a call and after it
	inputBytes  = 40      // an input word
	expandBytes = 1 << 10 // a node that may be spelled out
	nodeBytes   = 768     // a node or argument, in a builder and in the script
	shareBytes  = 32      // the same for each processor: of products all have a part
)

// recorded is the words of nodes and the input words of all graphs.
func (e *Engine) recorded() (words, inputs uint64) {
	for _, g := range e.graphs {
		words += uint64(g.wire.Len() + len(g.wire.Args) + len(g.wire.Attrs))
		inputs += uint64(len(g.inputs()))
	}
	return words, inputs
}

// roomForWords proves room for words of a call.
func (e *Engine) roomForWords(w *bridge.Words) error {
	if w == nil {
		return nil
	}
	words, inputs := e.recorded()
	words, inputs = words+uint64(len(w.Nodes)+len(w.Dims)), inputs+uint64(len(w.Inputs))
	return e.room.prove(words*wordBytes+inputs*inputBytes, "the graph")
}

// roomForExpansion proves room for spelling out a graph's nodes.
func (e *Engine) roomForExpansion(nodes int) error {
	return e.room.prove(uint64(nodes)*expandBytes, "the graph")
}

// roomForScript proves room for a script of a graph, and of as large ones that other builders are at work on.
func (e *Engine) roomForScript(g *bridge.Graph) error {
	builderCount := uint64(1)
	if e.asynchronous() {
		builderCount += builders
	}
	words, inputs := e.recorded()
	script := uint64(g.Len()+len(g.Args))*(nodeBytes+shareBytes*uint64(e.plan.Processors)) + uint64(len(g.Inputs))*inputBytes +
		uint64(len(e.params))*paramBytes
	if e.verify || e.check {
		script *= 4
	}
	return e.room.prove(words*wordBytes+inputs*inputBytes+builderCount*script, "the batch's script")
}
