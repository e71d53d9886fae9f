package cpu

import (
	"bytes"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"libvpps/persist/isa"
	"libvpps/persist/plan"
)

// The time in which a process is stopped - by Ctrl-Z, a debugger, whoever moves its virtual machine - is no time that a
// processor waits: nobody could have written what it waits for.
func TestAStoppedProcessDoesNotWait(t *testing.T) {
	const child, limit = "VPPS_TEST_STOPPED", 2.0
	if os.Getenv(child) != "" {
		stopWhileWaiting(t, limit)
		return
	}
	c := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), child+"=1")
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	require.NoError(t, c.Start())
	var status syscall.WaitStatus
	_, err := syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil)
	for err == syscall.EINTR {
		_, err = syscall.Wait4(c.Process.Pid, &status, syscall.WUNTRACED, nil)
	}
	require.NoError(t, err)
	require.True(t, status.Stopped(), "the child did not stop: status %d", status)
	time.Sleep(time.Duration(1.2 * limit * float64(time.Second)))
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	require.NoError(t, c.Wait(), &out)
}

// stopWhileWaiting has a processor wait at a barrier, whose signal comes a moment after the process goes on.
func stopWhileWaiting(t *testing.T, limit float64) {
	e, err := New(1, 1, limit)
	require.NoError(t, err)
	defer e.Close()
	p, err := plan.Sliced(nil, 1)
	require.NoError(t, err)
	require.NoError(t, e.SetPlan(p))
	waiting := func(signals uint32) *isa.Script {
		a := isa.NewAssembler(1)
		a.Wait(0, 0, signals)
		return a.Script()
	}
	require.NoError(t, e.Launch(waiting(0), 1)) // the next script takes its place
	s := waiting(1)
	counter := (*uint32)(unsafe.Add(e.script, 4*uintptr(s.Words[isa.HeadCounters])))
	go func() {
		time.Sleep(700 * time.Millisecond) // the processor waits meanwhile
		begin := time.Now()
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		for took := 0.0; took < limit; { // until it has been stopped
			time.Sleep(time.Millisecond)
			took = time.Since(begin).Seconds()
			begin = time.Now()
		}
		time.Sleep(400 * time.Millisecond) // the processor looks meanwhile
		atomic.AddUint32(counter, 1)
	}()
	require.NoError(t, e.Launch(s, 2))
}
