package comm

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// launches are those of ranks on this machine, on a port that is free.
func launches(t *testing.T, size int) []Launch {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	all := make([]Launch, size)
	for rank := range all {
		all[rank] = Launch{By: Torchrun, Rank: rank, Size: size, Local: rank, LocalSize: size, Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, Run: "test"}
	}
	return all
}

func theID() ([]byte, error) { return []byte("an id"), nil }

// meetAll has all meet at once.
func meetAll(all []Launch, meet func(l Launch) (answer, error)) ([]answer, []error) {
	answers, errs := make([]answer, len(all)), make([]error, len(all))
	var wait sync.WaitGroup
	for k, l := range all {
		wait.Go(func() { answers[k], errs[k] = meet(l) })
	}
	wait.Wait()
	return answers, errs
}

// ways are how ranks meet that have no connection.
func ways(t *testing.T) map[string]func(l Launch, cannot string, id func() ([]byte, error), patience time.Duration) (answer, error) {
	file := filepath.Join(t.TempDir(), "ranks")
	return map[string]func(Launch, string, func() ([]byte, error), time.Duration) (answer, error){
		"TCP": Launch.meetTCP,
		"file": func(l Launch, cannot string, id func() ([]byte, error), patience time.Duration) (answer, error) {
			return l.meetFile(file, cannot, id, patience)
		},
	}
}

func TestRanksMeet(t *testing.T) {
	for name, meet := range ways(t) {
		for round := range 3 { // again and again in one place
			answers, errs := meetAll(launches(t, 5), func(l Launch) (answer, error) {
				time.Sleep(time.Duration(l.Rank*7%5) * 10 * time.Millisecond)
				return meet(l, "", theID, time.Minute)
			})
			for rank, err := range errs {
				require.NoError(t, err, "%s %d, rank %d", name, round, rank)
				require.Equal(t, "an id", string(answers[rank].ID))
			}
		}
	}
}

func TestARankThatCannotIsNamedToAll(t *testing.T) {
	for name, meet := range ways(t) {
		answers, errs := meetAll(launches(t, 3), func(l Launch) (answer, error) {
			return meet(l, []string{"", "no GPU", "no NCCL"}[l.Rank], func() ([]byte, error) { panic("not asked") }, time.Minute)
		})
		for rank, err := range errs {
			require.NoError(t, err, name)
			require.Empty(t, answers[rank].ID)
			require.Equal(t, "rank 1: no GPU", answers[rank].Why)
		}
	}
}

func TestAnIDThatCannotBeMadeIsToldToAll(t *testing.T) {
	for name, meet := range ways(t) {
		_, errs := meetAll(launches(t, 3), func(l Launch) (answer, error) {
			return meet(l, "", func() ([]byte, error) { return nil, errors.New("no network") }, time.Minute)
		})
		for _, err := range errs {
			require.ErrorContains(t, err, "rank 0: no network", name)
		}
	}
}

func TestAMissingRankIsNamed(t *testing.T) {
	for name, meet := range ways(t) {
		all := launches(t, 4)
		_, errs := meetAll([]Launch{all[0], all[2]}, func(l Launch) (answer, error) {
			return meet(l, "", theID, time.Duration(1+l.Rank)*time.Second/2) // rank 0's time is over first
		})
		for _, err := range errs {
			require.ErrorContains(t, err, "ranks 1, 3 did not arrive within 500ms", name)
		}
	}
}

func TestAMissingRank0IsNamed(t *testing.T) {
	for name, meet := range ways(t) {
		_, err := meet(launches(t, 2)[1], "", theID, 200*time.Millisecond)
		require.ErrorIs(t, err, ErrAbsent)
		require.ErrorContains(t, err, "rank 1 of 2 found no", name)
	}
}

func TestRanksOfDifferentSizesAreNamed(t *testing.T) {
	for name, meet := range ways(t) {
		all := launches(t, 3)
		all[1].Size = 4
		_, errs := meetAll(all, func(l Launch) (answer, error) { return meet(l, "", theID, time.Second) })
		require.ErrorIs(t, errs[0], ErrDiffers, name)
		require.ErrorContains(t, errs[0], "rank 1 was started as one of 4, rank 0 as one of 3", name)
		require.Error(t, errs[1], name)
		require.Error(t, errs[2], name)
	}
}

func TestTwoRanksWithOneNumberAreNamed(t *testing.T) {
	for name, meet := range ways(t) {
		all := launches(t, 3)
		all[2].Rank = 1
		_, errs := meetAll(all, func(l Launch) (answer, error) { return meet(l, "", theID, time.Second) })
		text := fmt.Sprint(errs)
		require.Contains(t, text, "two processes say that they are rank 1 of 3", name)
		for _, err := range errs {
			require.Error(t, err, name)
		}
	}
}

// Strangers that are silent, say garbage, or too much of it, or go away, do not keep ranks from meeting.
func TestStrangersDoNotDisturb(t *testing.T) {
	all := launches(t, 2)
	over := make(chan struct{})
	strangers := 0
	go func() {
		defer close(over)
		for strangers < 8 {
			conn, err := net.Dial("tcp", all[0].address())
			if err != nil {
				time.Sleep(time.Millisecond)
				continue
			}
			switch strangers % 4 {
			case 0: // silent
				defer conn.Close()
			case 1:
				_, _ = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
				conn.Close()
			case 2:
				_, _ = conn.Write([]byte(`{"Protocol":"another","Rank":1,"Size":2}` + "\n"))
			case 3:
				_, _ = conn.Write(make([]byte, 1<<16))
				conn.Close()
			}
			strangers++
		}
	}()
	_, errs := meetAll(all, func(l Launch) (answer, error) {
		if l.Rank > 0 {
			<-over
		}
		return l.meetTCP("", theID, time.Minute)
	})
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, 8, strangers)
}

// Another program has the port: it is silent, or says something else.
func TestAnotherProgramInPlaceOfRank0(t *testing.T) {
	for _, says := range []string{"", "220 mail ready\r\n", `{"Protocol":"another"}` + "\n"} {
		l := launches(t, 2)[1]
		listener, err := net.Listen("tcp", l.address())
		require.NoError(t, err)
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				if says != "" {
					_, _ = conn.Write([]byte(says))
				}
			}
		}()
		_, err = l.meetTCP("", theID, 300*time.Millisecond)
		require.ErrorIs(t, err, ErrAbsent)
		require.ErrorContains(t, err, "VPPS_PORT")
		l.Rank = 0
		_, err = l.meetTCP("", theID, 300*time.Millisecond)
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorContains(t, err, "VPPS_PORT names another port")
		listener.Close()
	}
}

// A rank of another start is told so, and is no rank of this one.
func TestARankOfAnotherStart(t *testing.T) {
	all := launches(t, 2)
	other := all[1]
	other.Run = "an earlier one"
	_, errs := meetAll([]Launch{all[0], other, all[1]}, func(l Launch) (answer, error) {
		if l == all[1] {
			time.Sleep(300 * time.Millisecond)
		}
		return l.meetTCP("", theID, time.Minute)
	})
	require.NoError(t, errs[0])
	require.ErrorContains(t, errs[1], "belongs to another start")
	require.NoError(t, errs[2])
}

// What an earlier start has left lying does not count.
func TestFilesOfAnEarlierStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ranks")
	all := launches(t, 3)
	require.NoError(t, write(nameOf(file, 1), all[1].caller("")))
	old := all[2]
	old.Size = 9
	require.NoError(t, write(nameOf(file, 2), old.caller("")))
	require.NoError(t, write(file, answer{Protocol: protocol, Nonces: []string{"a", "b", "c"}, ID: []byte("old")}))
	answers, errs := meetAll(all, func(l Launch) (answer, error) {
		time.Sleep(time.Duration(l.Rank) * 100 * time.Millisecond)
		return l.meetFile(file, "", theID, time.Minute)
	})
	require.NoError(t, errors.Join(errs...))
	for _, a := range answers {
		require.Equal(t, "an id", string(a.ID))
	}
	left, err := filepath.Glob(file + "*")
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, os.WriteFile(nameOf(file, 1), []byte("garbage"), 0o600))
	_, err = all[0].meetFile(file, "", theID, 100*time.Millisecond)
	require.ErrorContains(t, err, "ranks 1, 2 did not arrive")
	_, errs = meetAll([]Launch{all[0], all[0]}, func(l Launch) (answer, error) {
		return l.meetFile(file, "", theID, time.Second)
	})
	require.ErrorContains(t, errors.Join(errs...), "is in use by another start")
	_, err = all[0].meetFile(filepath.Join(t.TempDir(), "none", "ranks"), "", theID, time.Minute)
	require.ErrorContains(t, err, "VPPS_COMM_FILE")
}

// A pipe would have a rank wait for who writes to it, and a device would be replaced by a file.
func TestRanksMeetByRegularFilesOnly(t *testing.T) {
	all := launches(t, 2)
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	for _, file := range []string{pipe, t.TempDir()} {
		over := make(chan []error, 1)
		go func() {
			_, errs := meetAll(all, func(l Launch) (answer, error) { return l.meetFile(file, "", theID, 100*time.Millisecond) })
			over <- errs
		}()
		select {
		case errs := <-over:
			for _, err := range errs {
				require.ErrorIs(t, err, ErrUnavailable, file)
				require.ErrorContains(t, err, "VPPS_COMM_FILE: "+file+" is no regular file")
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("ranks wait at %s for ever", file)
		}
	}
	info, err := os.Lstat(pipe)
	require.NoError(t, err)
	require.Equal(t, fs.ModeNamedPipe, info.Mode().Type(), "the pipe is there")
}
