package main

/*
#include "vpps.h"
#include "errors.h"
*/
import "C"

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"unsafe"

	"libvpps/bridge"
	"libvpps/persist"
	"libvpps/persist/clocks"
	"libvpps/persist/script"
)

// engines are opened once per device; "auto" is the one of the device that it found.
var engines struct {
	sync.Mutex
	open map[string]*shared // by the names asked for and the device's own
}

type shared struct {
	engine *persist.Engine
	handle C.uintptr_t
	users  int
}

//export goEngineOpen
func goEngineOpen(o *C.vpps_cengine_options, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	name := "auto"
	if o.device != nil {
		name = C.GoString(o.device)
	}
	engines.Lock()
	defer engines.Unlock()
	s := engines.open[name]
	if s == nil {
		e, err := persist.Open(persist.Options{Device: name, Threads: int(o.threads), Processors: int(o.processors), Seed: uint32(o.seed), Snapshot: int(o.snapshot_batches),
			Plan: textOf(o.plan), Trace: textOf(o.trace), Times: o.times != 0, Version: fmt.Sprintf("%d.%d.%d", C.VPPS_VERSION_MAJOR, C.VPPS_VERSION_MINOR, C.VPPS_VERSION_PATCH)})
		if err != nil {
			return failed(err)
		}
		s = share(name, e)
	}
	s.users++
	*out = s.handle
	return 0
}

// textOf is a C string, "" for NULL.
func textOf(s *C.vpps_cchar) string {
	if s == nil {
		return ""
	}
	return C.GoString((*C.char)(s))
}

// share enters a new engine under its names, unless its device has one already.
func share(name string, e *persist.Engine) *shared {
	if engines.open == nil {
		engines.open = map[string]*shared{}
	}
	device := deviceOf(e.Describe())
	s := engines.open[device]
	if s != nil {
		e.Close()
	} else {
		s = &shared{engine: e}
		s.handle = newHandle(s)
	}
	engines.open[name], engines.open[device] = s, s
	return s
}

// deviceOf is the device that a description begins with: "cpu", "cuda:1".
func deviceOf(description string) string {
	device, _, _ := strings.Cut(description, ": ")
	return device
}

//export goEngineClose
func goEngineClose(h C.uintptr_t) (status C.int) {
	defer guard(&status)
	engines.Lock()
	defer engines.Unlock()
	s, err := object[shared](h, "engine")
	if err != nil {
		return failed(err)
	}
	if s.users--; s.users > 0 {
		return 0
	}
	maps.DeleteFunc(engines.open, func(_ string, x *shared) bool { return x == s })
	release(s.handle)
	s.engine.Close()
	return 0
}

func engine(h C.uintptr_t) (*persist.Engine, error) {
	s, err := object[shared](h, "engine")
	if err != nil {
		return nil, err
	}
	return s.engine, nil
}

//export goEngineDescribe
func goEngineDescribe(h C.uintptr_t, to *C.char, size C.size_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	text(e.Describe(), to, size, nil)
	return 0
}

//export goEngineSeed
func goEngineSeed(h C.uintptr_t, seed C.uint32_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	e.Seed(uint32(seed))
	return 0
}

//export goEngineStatistics
func goEngineStatistics(h C.uintptr_t, to *C.vpps_statistics) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	s := e.Statistics()
	to.batches, to.launches, to.copies_to_device = C.uint64_t(s.Batches), C.uint64_t(s.Launches), C.uint64_t(s.Copies)
	to.nodes, to.decode_ns, to.plan_ns = C.uint64_t(s.Nodes), C.uint64_t(s.DecodeNS), C.uint64_t(s.PlanNS)
	to.schedule_ns, to.execute_ns, to.script_words = C.uint64_t(s.ScheduleNS), C.uint64_t(s.ExecuteNS), C.uint64_t(s.Script)
	return 0
}

//export goEngineTimes
func goEngineTimes(h C.uintptr_t, to *C.vpps_times) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	t, err := e.Times()
	if err != nil {
		return failed(err)
	}
	to.record_ns, to.decode_ns, to.schedule_ns = C.uint64_t(t.RecordNS), C.uint64_t(t.DecodeNS), C.uint64_t(t.ScheduleNS)
	to.launch_ns, to.wait_ns = C.uint64_t(t.LaunchNS), C.uint64_t(t.WaitNS)
	to.copy_ns, to.kernel_ns = C.uint64_t(t.CopyNS), C.uint64_t(t.KernelNS)
	s := &t.Clocks
	to.processors, to.launches = C.uint32_t(s.Processors), C.uint64_t(s.Launches)
	for part, to := range map[clocks.Part]*C.vpps_part_time{
		clocks.Start: &to.start, clocks.Forward: &to.forward, clocks.Backward: &to.backward, clocks.Gradients: &to.gradients,
		clocks.Update: &to.update, clocks.Fetch: &to.fetch, clocks.Waiting: &to.waiting, clocks.Idle: &to.idle, clocks.Busy: &to.busy,
	} {
		to.mean_ns, to.max_ns = C.uint64_t(s.Parts[part].Mean), C.uint64_t(s.Parts[part].Max)
	}
	to.loaded_bytes, to.updated_bytes, to.streamed_bytes = C.uint64_t(s.Loaded), C.uint64_t(s.Updated), C.uint64_t(s.Streamed)
	return 0
}

//export goClockTable
func goClockTable(h C.uintptr_t, to *C.char, size C.size_t, needed *C.size_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	t, err := e.Times()
	if err != nil {
		return failed(err)
	}
	text(t.Clocks.Table(), to, size, needed)
	return 0
}

//export goCollectionCreate
func goCollectionCreate(h C.uintptr_t, lambda C.float, out *C.uint32_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	c, err := e.NewCollection(float32(lambda))
	*out = C.uint32_t(c)
	return failed(err)
}

//export goCollectionSetLambda
func goCollectionSetLambda(h C.uintptr_t, c C.uint32_t, lambda C.float) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	return failed(e.SetLambda(uint32(c), float32(lambda)))
}

//export goCollectionFactor
func goCollectionFactor(h C.uintptr_t, c C.uint32_t, out *C.float) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	f, err := e.Factor(uint32(c))
	*out = C.float(f)
	return failed(err)
}

//export goParameterCreate
func goParameterCreate(h C.uintptr_t, c C.uint32_t, name *C.vpps_cchar, dim *C.vpps_cdim, flags C.uint32_t, values *C.vpps_cfloat, out *C.uint32_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	d := *(*bridge.Dim)(unsafe.Pointer(dim))
	if err := bridge.CheckDim(&d); err != nil {
		return failed(err)
	}
	var v []float32
	if values != nil {
		v = slice[float32](values, C.size_t(d.Size()))
	}
	n := ""
	if name != nil {
		n = C.GoString((*C.char)(name))
	}
	id, err := e.NewParameter(uint32(c), n, d, flags&C.VPPS_PARAMETER_LOOKUP != 0, v)
	*out = C.uint32_t(id)
	return failed(err)
}

//export goParameterDestroy
func goParameterDestroy(h C.uintptr_t, id C.uint32_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	return failed(e.DestroyParameter(uint32(id)))
}

func partOf(part C.int) (persist.Part, error) {
	if part != C.VPPS_VALUES && part != C.VPPS_GRADIENT {
		return 0, argument("part %d: write VPPS_VALUES or VPPS_GRADIENT", int(part))
	}
	return persist.Part(part), nil
}

//export goParameterRead
func goParameterRead(h C.uintptr_t, id C.uint32_t, part C.int, offset, count C.uint64_t, to *C.float) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	p, err := partOf(part)
	if err != nil {
		return failed(err)
	}
	v, err := array[float32](to, count, "elements")
	if err != nil {
		return failed(err)
	}
	return failed(e.ReadParameter(uint32(id), p, uint64(offset), v))
}

//export goParameterWrite
func goParameterWrite(h C.uintptr_t, id C.uint32_t, part C.int, offset, count C.uint64_t, from *C.vpps_cfloat) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	p, err := partOf(part)
	if err != nil {
		return failed(err)
	}
	v, err := array[float32](from, count, "elements")
	if err != nil {
		return failed(err)
	}
	return failed(e.WriteParameter(uint32(id), p, uint64(offset), v))
}

//export goParameterScale
func goParameterScale(h C.uintptr_t, id C.uint32_t, part C.int, factor C.float) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	p, err := partOf(part)
	if err != nil {
		return failed(err)
	}
	return failed(e.ScaleParameter(uint32(id), p, float32(factor)))
}

//export goParameterExpose
func goParameterExpose(h C.uintptr_t, id C.uint32_t, part C.int, out **C.float) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	which, err := partOf(part)
	if err != nil {
		return failed(err)
	}
	p, err := e.Expose(uint32(id), which)
	*out = (*C.float)(p)
	return failed(err)
}

//export goParameterSetUpdated
func goParameterSetUpdated(h C.uintptr_t, id C.uint32_t, updated C.int) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	return failed(e.SetUpdated(uint32(id), updated != 0))
}

//export goParameterTouched
func goParameterTouched(h C.uintptr_t, id C.uint32_t, rows *C.uint32_t, capacity C.uint64_t, count *C.uint64_t, all *C.int) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	r, whole, err := e.Touched(uint32(id))
	if err != nil {
		return failed(err)
	}
	*count, *all = C.uint64_t(len(r)), 0
	if whole {
		*all = 1
	}
	if rows != nil {
		copy(slice[uint32](rows, C.size_t(min(capacity, C.uint64_t(len(r))))), r)
	}
	return 0
}

//export goParameterMemory
func goParameterMemory(h C.uintptr_t, id C.uint32_t, out **C.float) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	p, err := e.Memory(uint32(id))
	if err != nil {
		return failed(err)
	}
	*out = (*C.float)(p)
	return 0
}

//export goGraphCreate
func goGraphCreate(h C.uintptr_t, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	*out = newHandle(e.NewGraph())
	return 0
}

//export goGraphDestroy
func goGraphDestroy(h C.uintptr_t) (status C.int) {
	defer guard(&status)
	g, err := object[persist.Graph](h, "graph")
	if err != nil {
		return failed(err)
	}
	g.Close()
	release(h)
	return 0
}

//export goForward
func goForward(h C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, restart C.int) (status C.int) {
	defer guard(&status)
	g, ws, err := call(h, w)
	if err != nil {
		return failed(err)
	}
	return failed(g.Forward(ws, uint32(node), restart != 0))
}

// call resolves the arguments that all graph calls share.
func call(h C.uintptr_t, w *C.vpps_cwords) (*persist.Graph, *bridge.Words, error) {
	g, err := object[persist.Graph](h, "graph")
	if err != nil {
		return nil, nil, err
	}
	ws, err := words((*C.vpps_words)(w))
	return g, ws, err
}

//export goValue
func goValue(h C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, to *C.float, count C.size_t) (status C.int) {
	defer guard(&status)
	g, ws, err := call(h, w)
	if err != nil {
		return failed(err)
	}
	v, err := array[float32](to, C.uint64_t(count), "elements")
	if err != nil {
		return failed(err)
	}
	return failed(g.Value(ws, uint32(node), v))
}

//export goBackward
func goBackward(h C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, full C.int) (status C.int) {
	defer guard(&status)
	g, ws, err := call(h, w)
	if err != nil {
		return failed(err)
	}
	return failed(g.Backward(ws, uint32(node), full != 0))
}

//export goGradient
func goGradient(h C.uintptr_t, node C.uint32_t, to *C.float, count C.size_t) (status C.int) {
	defer guard(&status)
	g, err := object[persist.Graph](h, "graph")
	if err != nil {
		return failed(err)
	}
	v, err := array[float32](to, C.uint64_t(count), "elements")
	if err != nil {
		return failed(err)
	}
	return failed(g.Gradient(uint32(node), v))
}

//export goGraphTruncate
func goGraphTruncate(h C.uintptr_t, node C.uint32_t) (status C.int) {
	defer guard(&status)
	g, err := object[persist.Graph](h, "graph")
	if err != nil {
		return failed(err)
	}
	return failed(g.Truncate(uint32(node)))
}

//export goGraphInvalidate
func goGraphInvalidate(h C.uintptr_t, node C.uint32_t) (status C.int) {
	defer guard(&status)
	g, err := object[persist.Graph](h, "graph")
	if err != nil {
		return failed(err)
	}
	return failed(g.Invalidate(uint32(node)))
}

func trainerOptions(o *C.vpps_ctrainer_options) (persist.TrainerOptions, error) {
	if o.rule > C.VPPS_RULE_EG {
		return persist.TrainerOptions{}, argument("update rule %d: this version has those up to EG (%d)", uint32(o.rule), C.VPPS_RULE_EG)
	}
	return persist.TrainerOptions{Rule: script.Rule(o.rule), LearningRate: float32(o.learning_rate), Clipping: o.clipping != 0,
		Threshold: float32(o.clip_threshold), Sparse: o.sparse != 0, Collection: uint32(o.collection),
		Momentum: float32(o.momentum), Rho: float32(o.rho), Epsilon: float32(o.epsilon),
		Beta1: float32(o.beta_1), Beta2: float32(o.beta_2)}, nil
}

//export goTrainerCreate
func goTrainerCreate(h C.uintptr_t, o *C.vpps_ctrainer_options, ids *C.vpps_cuint, count C.size_t, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	opt, err := trainerOptions(o)
	if err != nil {
		return failed(err)
	}
	list, err := array[uint32](ids, C.uint64_t(count), "parameters")
	if err != nil {
		return failed(err)
	}
	t, err := e.NewTrainer(opt, list)
	if err != nil {
		return failed(err)
	}
	*out = newHandle(t)
	return 0
}

//export goTrainerSet
func goTrainerSet(h C.uintptr_t, o *C.vpps_ctrainer_options) (status C.int) {
	defer guard(&status)
	t, err := object[persist.Trainer](h, "trainer")
	if err != nil {
		return failed(err)
	}
	opt, err := trainerOptions(o)
	if err != nil {
		return failed(err)
	}
	return failed(t.Set(opt))
}

//export goTrainerAdd
func goTrainerAdd(h C.uintptr_t, ids *C.vpps_cuint, count C.size_t) (status C.int) {
	defer guard(&status)
	t, err := object[persist.Trainer](h, "trainer")
	if err != nil {
		return failed(err)
	}
	list, err := array[uint32](ids, C.uint64_t(count), "parameters")
	if err != nil {
		return failed(err)
	}
	return failed(t.Add(list))
}

//export goTrainerRestart
func goTrainerRestart(h C.uintptr_t) (status C.int) {
	defer guard(&status)
	t, err := object[persist.Trainer](h, "trainer")
	if err != nil {
		return failed(err)
	}
	return failed(t.Restart())
}

//export goUpdate
func goUpdate(h C.uintptr_t, clipped *C.int) (status C.int) {
	defer guard(&status)
	t, err := object[persist.Trainer](h, "trainer")
	if err != nil {
		return failed(err)
	}
	c, err := t.Update()
	if clipped != nil {
		*clipped = 0
		if c {
			*clipped = 1
		}
	}
	return failed(err)
}

//export goRelease
func goRelease(h C.uintptr_t) (status C.int) {
	defer guard(&status)
	release(h)
	return 0
}

//export goHandleCreate
func goHandleCreate(h C.uintptr_t, ids *C.vpps_cuint, count C.size_t, trainer C.uintptr_t, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	var t *persist.Trainer
	if trainer != 0 {
		if t, err = object[persist.Trainer](trainer, "trainer"); err != nil {
			return failed(err)
		}
	}
	list, err := array[uint32](ids, C.uint64_t(count), "parameters")
	if err != nil {
		return failed(err)
	}
	x, err := e.NewHandle(list, t)
	if err != nil {
		return failed(err)
	}
	*out = newHandle(x)
	return 0
}

//export goHandleTrainer
func goHandleTrainer(h C.uintptr_t, out *C.uintptr_t) (status C.int) {
	defer guard(&status)
	x, err := object[persist.Handle](h, "handle")
	if err != nil {
		return failed(err)
	}
	*out = trainerOf(x)
	return 0
}

//export goFB
func goFB(h, graph C.uintptr_t, w *C.vpps_cwords, node C.uint32_t, stale *C.float) (status C.int) {
	defer guard(&status)
	x, err := object[persist.Handle](h, "handle")
	if err != nil {
		return failed(err)
	}
	g, ws, err := call(graph, w)
	if err != nil {
		return failed(err)
	}
	loss, err := x.FB(g, ws, uint32(node))
	*stale = C.float(loss)
	return failed(err)
}

//export goHandleKeep
func goHandleKeep(h, graph C.uintptr_t, nodes *C.vpps_cuint, count C.size_t) (status C.int) {
	defer guard(&status)
	x, err := object[persist.Handle](h, "handle")
	if err != nil {
		return failed(err)
	}
	g, err := object[persist.Graph](graph, "graph")
	if err != nil {
		return failed(err)
	}
	list, err := array[uint32](nodes, C.uint64_t(count), "nodes")
	if err != nil {
		return failed(err)
	}
	return failed(x.Keep(g, list))
}

//export goSyncLatestLoss
func goSyncLatestLoss(h C.uintptr_t, out *C.float) (status C.int) {
	defer guard(&status)
	x, err := object[persist.Handle](h, "handle")
	if err != nil {
		return failed(err)
	}
	loss, err := x.SyncLatestLoss()
	*out = C.float(loss)
	return failed(err)
}

//export goHandleClips
func goHandleClips(h C.uintptr_t, out *C.uint64_t) (status C.int) {
	defer guard(&status)
	x, err := object[persist.Handle](h, "handle")
	if err != nil {
		return failed(err)
	}
	n, err := x.Clips()
	*out = C.uint64_t(n)
	return failed(err)
}

//export goPlanReport
func goPlanReport(h C.uintptr_t, to *C.char, size C.size_t, needed *C.size_t) (status C.int) {
	defer guard(&status)
	x, err := object[persist.Handle](h, "handle")
	if err != nil {
		return failed(err)
	}
	text(x.PlanReport(), to, size, needed)
	return 0
}

//export goFlushTimeline
func goFlushTimeline(h C.uintptr_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	return failed(e.FlushTimeline())
}

//export goScriptDump
func goScriptDump(h C.uintptr_t, to *C.char, size C.size_t, needed *C.size_t) (status C.int) {
	defer guard(&status)
	e, err := engine(h)
	if err != nil {
		return failed(err)
	}
	text(e.Dump(), to, size, needed)
	return 0
}

//export goBuildInfo
func goBuildInfo(to *C.char, size C.size_t) {
	text(buildInfo(), to, size, nil)
}
