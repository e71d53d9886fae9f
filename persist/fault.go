package persist

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"syscall"

	"libvpps/gpu"
	"libvpps/persist/isa"
	"libvpps/persist/script"
)

// Failures of the executor: which of them the engine survives.

// errRefused is of a launch that the driver did not start: nothing has changed.
var errRefused = fmt.Errorf("%w: it refused to start", ErrDevice)

// unbuilt is an error of making a script. The device has not been asked for anything: the batch alone fails.
type unbuilt struct{ error }

func (u unbuilt) Unwrap() error { return u.error }

// build makes a request's script.
func build(builder *script.Builder, r *script.Request) (*script.Built, error) {
	return guarded(builder, func() (*script.Built, error) { return builder.Build(r) })
}

// second makes the second script of a split request, whose first was made last.
func second(builder *script.Builder, space []uint32) (*script.Built, error) {
	return guarded(builder, func() (*script.Built, error) { return builder.Second(space) })
}

// guarded makes a script. A panic is an error of the batch, too; the builder begins anew after it.
func guarded(builder *script.Builder, build func() (*script.Built, error)) (built *script.Built, err error) {
	defer func() {
		if x := recover(); x != nil {
			*builder = script.Builder{}
			err = unbuilt{Panicked(x, debug.Stack())}
		}
	}()
	if built, err = build(); err != nil {
		return nil, unbuilt{err}
	}
	return built, nil
}

// Panicked is the error of a call that recovers from a panic.
func Panicked(x any, stack []byte) error {
	return fmt.Errorf("internal error: %v at %s", x, firstFrame(stack))
}

// firstFrame is the file and line where a panic began, of a stack taken while recovering.
func firstFrame(stack []byte) string {
	_, after, found := strings.Cut(string(stack), "\npanic(")
	if !found {
		return "an unknown place"
	}
	for line := range strings.SplitSeq(after, "\n") {
		if strings.HasPrefix(line, "\t") && !strings.Contains(line, "runtime/") {
			return strings.TrimSpace(line)
		}
	}
	return "an unknown place"
}

// harmless is the kind of an error after which the device works on, nil of all others. An error of making a
// script keeps its own.
func harmless(err error) error {
	var d *gpu.Error
	var u unbuilt
	var k *kindError
	switch {
	case errors.As(err, &u):
		return u.error
	case errors.As(err, &k) && k.kind != ErrDevice:
		return k.kind
	case exhausted(err):
		return ErrMemory
	case errors.Is(err, errRefused):
		return errRefused
	case !errors.As(err, &d):
		return nil
	case d.OutOfMemory():
		return ErrMemory
	case d.Refused():
		return errRefused
	}
	return nil
}

// exhausted reports whether the host had no memory, as packages below this one say it.
func exhausted(err error) bool { return errors.Is(err, ErrMemory) || errors.Is(err, syscall.ENOMEM) }

// broke gives an error of the executor its kind. Unless the device works on, the engine is dead.
func (e *Engine) broke(err error) error {
	if kind := harmless(err); kind != nil {
		return wrong(kind, "%v", err)
	}
	return e.fail(err)
}

// fail keeps an error of the device; the engine is dead then.
func (e *Engine) fail(err error) error {
	e.dead = wrong(ErrDevice, "%v; the engine cannot go on: %s", err, e.snapshot.advice())
	return e.dead
}

// unplannable gives a failure to plan, compile or load its kind: the machine lacks what it takes,
// unless the driver says otherwise.
func (e *Engine) unplannable(err error) error {
	var d *gpu.Error
	if exhausted(err) || errors.As(err, &d) && (d.Fatal() || d.OutOfMemory()) {
		return e.broke(err)
	}
	return wrong(ErrUnsupported, "%v", err)
}

// lost reports whether the engine is dead because its device is.
func (e *Engine) lost() bool { return errors.Is(e.dead, ErrDevice) }

// grow makes room in a segment for what. A failure that the driver does not call another is one of
// memory.
func (e *Engine) grow(s isa.Segment, n uint64, what string) error {
	err := e.exec.Grow(s, n)
	if err == nil {
		return nil
	}
	if d := (*gpu.Error)(nil); errors.As(err, &d) && !d.OutOfMemory() {
		return err
	}
	return wrong(ErrMemory, "%s: %v", what, err)
}

// download and upload copy from and to a segment.
func (e *Engine) download(s isa.Segment, offset uint64, to []float32) error {
	if err := e.exec.Read(s, offset, to); err != nil {
		return e.broke(err)
	}
	return nil
}

// zero sets n floats of a segment to 0.
func (e *Engine) zero(s isa.Segment, offset, n uint64) error {
	if err := e.exec.Zero(s, offset, n); err != nil {
		return e.broke(err)
	}
	return nil
}

func (e *Engine) upload(s isa.Segment, offset uint64, from []float32) error {
	if s == isa.SegParam {
		if err := e.giveCopies(); err != nil {
			return err
		}
	}
	if err := e.exec.Write(s, offset, from); err != nil {
		return e.broke(err)
	}
	return nil
}
