package persist

import (
	"fmt"
	"slices"
	"unsafe"

	"libvpps/bridge"
	"libvpps/bridge/cells"
	"libvpps/jit/kernel"
	"libvpps/persist/isa"
)

// Checkpoints: all that training goes on from, in one file. Saving waits for the batches in flight. Loading reads and
// checks everything before it changes anything.

// Contents are what a checkpoint is made of and goes to: parameters, trainers and handles correspond by their order.
type Contents struct {
	IDs      []uint32
	Trainers []*Trainer
	Handles  []*Handle
	Blobs    []Blob // of saving
}

// Blob is bytes of the program's own.
type Blob struct {
	Name string
	Data []byte
}

const (
	isTable = 1 << iota
	isUpdated
	gradientWhole
	gradientApplied // by fb
)

// SaveCheckpoint writes what is there after all batches so far.
func (e *Engine) SaveCheckpoint(name string, c *Contents) error {
	e.enter()
	defer e.mu.Unlock()
	if err := e.settle(0); err != nil {
		return err
	}
	if err := e.pushExposed(); err != nil {
		return err
	}
	collections, err := e.checkContents(c)
	if err != nil {
		return err
	}
	f, err := createAtomic(name)
	if err != nil {
		return err
	}
	w := newSectionWriter(f)
	e.writeSections(w, c, collections)
	header, err := w.header()
	if err == nil {
		_, err = f.WriteAt(header, 0)
	}
	if err == nil {
		err = f.commit()
	}
	if err == nil {
		e.learnAnew()
		return nil
	}
	f.discard()
	if e.dead != nil {
		return e.dead
	}
	return wrong(ErrFile, "cannot write the checkpoint %s: %v", name, err)
}

// checkContents checks what a program has listed, and lists the collections in order of first mention.
func (e *Engine) checkContents(c *Contents) (collections []uint32, err error) {
	if err := e.distinct(c.IDs, nil); err != nil {
		return nil, err
	}
	mention := func(k uint32) {
		if !slices.Contains(collections, k) {
			collections = append(collections, k)
		}
	}
	for _, id := range c.IDs {
		mention(e.params[id].collection)
	}
	for k, t := range c.Trainers {
		if t.e != e {
			return nil, wrong(ErrArgument, "trainer %d is of another engine", k)
		}
		if slices.Contains(c.Trainers[:k], t) {
			return nil, wrong(ErrArgument, "trainer %d is named twice: name each once", k)
		}
		for _, id := range t.ids {
			if !slices.Contains(c.IDs, id) {
				return nil, wrong(ErrArgument, "trainer %d updates parameter %q, which is not among those of the checkpoint: list it", k, e.params[id].name)
			}
		}
		mention(t.options.Collection)
	}
	for k, h := range c.Handles {
		if h.e != e {
			return nil, wrong(ErrArgument, "handle %d is of another engine", k)
		}
		if slices.Contains(c.Handles[:k], h) {
			return nil, wrong(ErrArgument, "handle %d is named twice: name each once", k)
		}
	}
	for k, b := range c.Blobs {
		if slices.ContainsFunc(c.Blobs[:k], func(x Blob) bool { return x.Name == b.Name }) {
			return nil, wrong(ErrArgument, "blob %q is named twice: name each once", b.Name)
		}
	}
	return collections, nil
}

func (e *Engine) writeSections(w *sectionWriter, c *Contents, collections []uint32) {
	w.section(engineSection, mandatory, 8, func() {
		w.u32(e.seed)
		w.u32(e.graphIDs)
	})
	w.section(collectionSection, mandatory, 4+8*uint64(len(collections)), func() {
		w.u32(uint32(len(collections)))
		for _, k := range collections {
			w.f32(e.collections[k].Lambda)
			w.f32(e.collections[k].Factor)
		}
	})
	buffer := make([]float32, 1<<16)
	for _, id := range c.IDs {
		e.writeParameter(w, &e.params[id], uint32(slices.Index(collections, e.params[id].collection)), buffer)
	}
	for _, t := range c.Trainers {
		t.write(w, uint32(slices.Index(collections, t.options.Collection)), c.IDs, buffer)
	}
	for _, h := range c.Handles {
		w.section(handleSection, mandatory, 24+4*uint64(len(h.losses)), func() {
			w.u64(h.number)
			w.u64(h.count)
			w.u64(h.clips)
			w.floats(h.losses[:])
		})
	}
	for _, b := range c.Blobs {
		w.section(blobSection, mandatory, 4+uint64(len(b.Name)+len(b.Data)), func() {
			w.text(b.Name)
			w.raw(b.Data)
		})
	}
}

func (e *Engine) writeParameter(w *sectionWriter, p *parameter, collection uint32, buffer []float32) {
	flags := oneIf(p.Lookup)*isTable | oneIf(p.Updated)*isUpdated | oneIf(p.Pending)*gradientWhole | oneIf(p.fused)*gradientApplied
	length := 20 + uint64(len(p.name)) + 4*(uint64(p.dim.Nd)+uint64(len(p.Rows))+uint64(p.Size)+uint64(p.pending().floats(p)))
	w.section(parameterSection, mandatory, length, func() {
		w.u32(collection)
		w.u32(flags)
		w.text(p.name)
		w.u32(p.dim.Nd)
		for _, d := range p.dim.D[:p.dim.Nd] {
			w.u32(d)
		}
		w.u32(uint32(len(p.Rows)))
		for _, row := range p.Rows {
			w.u32(row)
		}
		e.writeFloats(w, p.segment(Values), uint64(p.Offset), uint64(p.Size), buffer)
		for offset, n := range p.pending().spans(p) {
			e.writeFloats(w, p.segment(Gradient), uint64(p.Offset+offset), uint64(n), buffer)
		}
	})
}

// writeFloats copies a part of a segment.
func (e *Engine) writeFloats(w *sectionWriter, s isa.Segment, at, n uint64, buffer []float32) {
	for n > 0 && w.err == nil {
		part := buffer[:min(n, uint64(len(buffer)))]
		if err := e.download(s, at, part); err != nil {
			w.err = err
		}
		w.floats(part)
		at, n = at+uint64(len(part)), n-uint64(len(part))
	}
}

func (t *Trainer) write(w *sectionWriter, collection uint32, ids []uint32, buffer []float32) {
	length := uint64(56)
	for _, size := range t.sizes {
		length += 4 + 4*size
	}
	o := &t.options
	w.section(trainerSection, mandatory, length, func() {
		w.u32(uint32(o.Rule))
		w.u32(oneIf(o.Clipping))
		w.u32(oneIf(o.Sparse))
		w.u32(collection)
		for _, x := range o.numbers() {
			w.f32(*x)
		}
		w.u64(t.steps)
		w.u32(uint32(len(t.ids)))
		for k, id := range t.ids {
			w.u32(uint32(slices.Index(ids, id)))
			t.e.writeFloats(w, isa.SegState, uint64(t.state[k]), t.sizes[k], buffer)
		}
	})
}

// ---- loading ------------------------------------------------------------------

// Blob reads the blob of a name; its size if it is longer than to. false: there is none.
func (c *Checkpoint) Blob(name string, to []byte) (size uint64, found bool, err error) {
	for _, s := range c.sections {
		if s.kind != blobSection {
			continue
		}
		r := c.read(s)
		if r.text() != name {
			continue
		}
		if size = r.left; size <= uint64(len(to)) {
			r.raw(to[:size])
		}
		if r.err != nil {
			err = c.damaged(s.at, "blob %q: %v", name, r.err)
		}
		return size, true, err
	}
	return 0, false, nil
}

// staged is what a checkpoint holds, read and checked against what it goes to.
type staged struct {
	memory        []unsafe.Pointer
	seed, graphs  uint32
	collections   []Collection
	collectionIDs []uint32 // of the engine; none: not known yet
	params        []stagedParameter
	trainers      []stagedTrainer
	handles       []Handle
}

type stagedParameter struct {
	flags            uint32
	rows             []uint32
	values, gradient []float32
}

type stagedTrainer struct {
	options TrainerOptions
	steps   uint64
	ids     []uint32
	states  [][]float32
}

const none = ^uint32(0)

func (s *staged) free() {
	for _, mem := range s.memory {
		kernel.Free(mem)
	}
}

// floats reads n floats into memory of C, of which there may be too little.
func (s *staged) floats(r *sectionReader, n uint64) []float32 {
	if r.err == nil && n > r.left/4 {
		r.err = errShort
	}
	if r.err != nil || n == 0 {
		return nil
	}
	mem := kernel.Alloc(int(n))
	if mem == nil {
		r.err = wrong(ErrMemory, "no memory for %d bytes", 4*n)
		return nil
	}
	s.memory = append(s.memory, mem)
	v := unsafe.Slice((*float32)(mem), n)
	r.raw(bytesOf(v))
	return v
}

// Load makes everything as it was when the checkpoint was saved, or changes nothing.
func (c *Checkpoint) Load(e *Engine, to *Contents) error {
	e.enter()
	defer e.mu.Unlock()
	if err := e.settle(0); err != nil {
		return err
	}
	if err := e.pushExposed(); err != nil {
		return err
	}
	if _, err := e.checkContents(to); err != nil {
		return err
	}
	var s staged
	defer s.free()
	if err := s.stage(e, c, to); err != nil {
		return err
	}
	if err := e.load(&s, to); err != nil {
		return err
	}
	e.learnAnew()
	return nil
}

// learnAnew forgets which patterns graphs have. Equal ones are merged, which changes how sums are rounded: a program that
// goes on after a checkpoint and one that is resumed from it must learn the same.
func (e *Engine) learnAnew() {
	e.dictionary = cells.Dictionary{}
	e.skip, e.skipped = 0, 0
	e.foresight = foresight{}
	for _, g := range e.graphs {
		g.matched = 0
	}
}

// stage reads and checks all sections.
func (s *staged) stage(e *Engine, c *Checkpoint, to *Contents) error {
	engines := 0
	for _, x := range c.sections {
		r := c.read(x)
		var err error
		switch x.kind {
		case engineSection:
			s.seed, s.graphs = r.u32(), r.u32()
			engines++
		case collectionSection:
			for range r.count(8) {
				s.collections = append(s.collections, Collection{r.f32(), r.f32()})
				s.collectionIDs = append(s.collectionIDs, none)
			}
		case parameterSection:
			err = s.stageParameter(e, r, to)
		case trainerSection:
			err = s.stageTrainer(e, r, to)
		case handleSection:
			s.handles = append(s.handles, readHandle(r))
		default: // blobs, and what need not be understood
			continue
		}
		if err == nil {
			err = r.end()
		}
		if err != nil {
			return c.refused(x, err)
		}
	}
	switch {
	case engines != 1:
		return c.damaged(headerBytes, "%d sections of an engine, not 1: the file is damaged", engines)
	case len(s.params) != len(to.IDs):
		return wrong(ErrState, "%s has %d parameters, %d are to be loaded: make the same as when it was saved", c.name, len(s.params), len(to.IDs))
	case len(s.trainers) != len(to.Trainers) || len(s.handles) != len(to.Handles):
		return wrong(ErrState, "%s has %d trainers and %d handles, %d and %d are to be loaded", c.name, len(s.trainers), len(s.handles), len(to.Trainers), len(to.Handles))
	}
	return s.checkCollections(c)
}

func (s *staged) checkCollections(c *Checkpoint) error {
	for k, x := range s.collections {
		if !(x.Lambda >= 0 && x.Lambda < 1) || !(x.Factor > 0 && x.Factor <= 1) {
			return c.damaged(headerBytes, "collection %d: weight decay %g with factor %g: the file is damaged", k, x.Lambda, x.Factor)
		}
	}
	return nil
}

// readHandle reads a handle. The file may have the losses of fewer batches than are kept here, or of more.
func readHandle(r *sectionReader) Handle {
	h := Handle{number: r.u64(), count: r.u64(), clips: r.u64()}
	n, kept := r.left/4, uint64(len(h.losses))
	for i := range n {
		loss := r.f32()
		if i >= h.count {
			continue
		}
		if k := h.count - 1 - (h.count-1-i)%n; k+kept >= h.count { // the batch's number
			h.losses[k%kept] = loss
		}
	}
	return h
}

// refused gives an error its kind: what does not fit the program, what memory lacks, or what is wrong with the file.
func (c *Checkpoint) refused(s section, err error) error {
	if k, ok := err.(*kindError); ok {
		return wrong(k.kind, "%s: %v", c.name, err)
	}
	return c.damaged(s.at, "%v: the file is damaged", err)
}

// collection has a number of the file stand for a collection of the engine, always the same.
func (s *staged) collection(number, of uint32, what string) error {
	if int(number) >= len(s.collections) {
		return fmt.Errorf("%s is in collection %d of %d", what, number, len(s.collections))
	}
	if k := slices.Index(s.collectionIDs, of); k >= 0 && k != int(number) || k < 0 && s.collectionIDs[number] != none {
		return wrong(ErrState, "%s is in another collection than when it was saved", what)
	}
	s.collectionIDs[number] = of
	return nil
}

func (s *staged) stageParameter(e *Engine, r *sectionReader, to *Contents) error {
	k := len(s.params)
	if k == len(to.IDs) {
		return wrong(ErrState, "more parameters than the %d that are to be loaded: make the same as when it was saved", k)
	}
	p := &e.params[to.IDs[k]]
	collection := r.u32()
	x := stagedParameter{flags: r.u32()}
	name, dim := r.text(), r.words()
	if r.err != nil {
		return r.err
	}
	if want := p.dim.D[:p.dim.Nd]; name != p.name || !slices.Equal(dim, want) || (x.flags&isTable != 0) != p.Lookup {
		return wrong(ErrState, "parameter %d is %q of %v, here it is %q of %v: make the same as when it was saved", k, shortened(name), shortenedDim(dim), p.name, want)
	}
	if err := s.collection(collection, p.collection, fmt.Sprintf("parameter %q", name)); err != nil {
		return err
	}
	x.rows = r.words()
	pending := uint64(len(x.rows)) * uint64(p.Row)
	if x.flags&gradientWhole != 0 {
		pending = uint64(p.Size)
	}
	for i, row := range x.rows {
		if uint64(row) >= uint64(p.Size/p.Row) || i > 0 && row <= x.rows[i-1] || !p.Lookup || x.flags&gradientWhole != 0 {
			return fmt.Errorf("parameter %q: rows with a gradient that cannot be", name)
		}
	}
	x.values = s.floats(r, uint64(p.Size))
	x.gradient = s.floats(r, pending)
	s.params = append(s.params, x)
	return r.err
}

func shortened(s string) string        { return s[:min(len(s), 100)] }
func shortenedDim(d []uint32) []uint32 { return d[:min(len(d), len(bridge.Dim{}.D)+1)] }

func (s *staged) stageTrainer(e *Engine, r *sectionReader, to *Contents) error {
	k := len(s.trainers)
	if k == len(to.Trainers) {
		return wrong(ErrState, "more trainers than the %d that are to be loaded", k)
	}
	t := to.Trainers[k]
	x := stagedTrainer{options: TrainerOptions{Rule: isa.Rule(r.u32()), Clipping: r.flag(), Sparse: r.flag()}}
	o := &x.options
	collection := r.u32()
	for _, x := range o.numbers() {
		*x = r.f32()
	}
	x.steps = r.u64()
	count := r.count(4)
	if r.err != nil {
		return r.err
	}
	o.Collection = t.options.Collection
	if o.Rule != t.options.Rule {
		return wrong(ErrState, "the update rule of trainer %d is %d, here it is %d: make the same trainer as when it was saved", k, o.Rule, t.options.Rule)
	}
	if int(count) != len(t.ids) {
		return wrong(ErrState, "trainer %d updates %d parameters, here %d", k, count, len(t.ids))
	}
	if err := o.check(); err != nil || x.steps > maxUpdates {
		return fmt.Errorf("trainer %d: %v, %d updates", k, err, x.steps)
	}
	if err := s.collection(collection, o.Collection, fmt.Sprintf("trainer %d", k)); err != nil {
		return err
	}
	for range count {
		index := r.u32()
		if r.err == nil && int(index) >= len(to.IDs) {
			return fmt.Errorf("trainer %d: parameter %d of %d", k, index, len(to.IDs))
		}
		if r.err != nil {
			return r.err
		}
		id := to.IDs[index]
		at := slices.Index(t.ids, id)
		if at < 0 || slices.Contains(x.ids, id) {
			return wrong(ErrState, "trainer %d updates parameter %q once when it was saved: add the same parameters", k, e.params[id].name)
		}
		x.ids = append(x.ids, id)
		x.states = append(x.states, s.floats(r, t.sizes[at]))
	}
	s.trainers = append(s.trainers, x)
	return nil
}

// load changes everything. Only a device that is lost stops it.
func (e *Engine) load(s *staged, to *Contents) error {
	e.set()
	for k, id := range to.IDs {
		if err := e.loadParameter(&e.params[id], &s.params[k]); err != nil {
			return err
		}
	}
	for k, t := range to.Trainers {
		if err := t.load(&s.trainers[k]); err != nil {
			return err
		}
	}
	for k, h := range to.Handles {
		x := &s.handles[k]
		h.number, h.count, h.clips, h.losses = x.number, x.count, x.clips, x.losses
	}
	for k, id := range s.collectionIDs {
		if id != none {
			e.collections[id] = s.collections[k]
		}
	}
	for i := range e.params { // graphs read them through the factor
		e.params[i].version++
	}
	e.seed, e.graphIDs = s.seed, s.graphs
	e.updates++ // values of graphs are stale
	return e.pullAll()
}

func (e *Engine) loadParameter(p *parameter, s *stagedParameter) error {
	p.gradientChanged() // pending rows are gone
	p.Rows, p.Pending = s.rows, s.flags&gradientWhole != 0
	p.Updated, p.fused = s.flags&isUpdated != 0, s.flags&gradientApplied != 0
	p.host[Values].whole = true
	p.gradientChanged()
	if err := e.upload(p.segment(Values), uint64(p.Offset), s.values); err != nil {
		return err
	}
	return p.pending().transfer(p, s.gradient, e.upload)
}

// load takes over the order of the parameters too, in which the norm of the gradients is summed up.
func (t *Trainer) load(s *stagedTrainer) error {
	state, sizes := make([]uint32, len(s.ids)), make([]uint64, len(s.ids))
	for k, id := range s.ids {
		at := slices.Index(t.ids, id)
		state[k], sizes[k] = t.state[at], t.sizes[at]
		if len(s.states[k]) == 0 {
			continue
		}
		if err := t.e.upload(isa.SegState, uint64(state[k]), s.states[k]); err != nil {
			return err
		}
	}
	t.ids, t.state, t.sizes = s.ids, state, sizes
	t.options, t.steps = s.options, s.steps
	return nil
}
