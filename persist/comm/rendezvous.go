package comm

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// How processes meet that have no connection yet: each tells rank 0 who it is and whether it can use the group's fast
// connection; rank 0 answers all with what that takes.

// caller is what a rank says.
type caller struct {
	Protocol   string
	Rank, Size int
	Run        string
	Nonce      string // tells two processes apart that say the same number
	Start      string // rank 0's nonce, in files
	Cannot     string // why this rank cannot use the fast connection; "": it can
}

// answer is what rank 0 says to all.
type answer struct {
	Protocol string
	Start    string   // rank 0's nonce, in files
	Nonces   []string // whom it answers, in files
	Error    string   // why the ranks do not meet
	ID       []byte   // of the fast connection; none: a rank cannot use it
	Why      string   // which, and why not
}

const (
	protocol    = "libvpps ranks 1"
	mostMessage = 1 << 20
	pause       = 20 * time.Millisecond // between two attempts
	mostHearing = 5 * time.Second       // for a connection to say who it is
)

func (l Launch) caller(cannot string) caller {
	return caller{Protocol: protocol, Rank: l.Rank, Size: l.Size, Run: l.Run, Nonce: rand.Text(), Cannot: cannot}
}

// roll is whom rank 0 has heard.
type roll struct {
	callers []caller // by rank; without a protocol: not yet
	missing int
	nonces  []string // of all that were heard, in files
}

func newRoll(own caller) *roll {
	r := &roll{callers: make([]caller, own.Size), missing: own.Size - 1}
	r.callers[0] = own
	return r
}

// add enters a rank, which may come again.
func (r *roll) add(c caller) error {
	own := r.callers[0]
	switch {
	case c.Size != own.Size:
		return &kindError{ErrDiffers, fmt.Sprintf("rank %d was started as one of %d, rank 0 as one of %d: start all with the same number", c.Rank, c.Size, own.Size)}
	case c.Rank < 1 || c.Rank >= own.Size:
		return &kindError{ErrDiffers, fmt.Sprintf("a process says that it is rank %d of %d: each rank from 0 on is one process", c.Rank, own.Size)}
	}
	before := &r.callers[c.Rank]
	if before.Protocol != "" && before.Nonce != c.Nonce {
		return &kindError{ErrDiffers, fmt.Sprintf("two processes say that they are rank %d of %d: each rank is one process", c.Rank, own.Size)}
	}
	if before.Protocol == "" {
		r.missing--
	}
	*before = c
	return nil
}

func (r *roll) late(patience time.Duration) error {
	return absent(1, call{kind: meeting}, func(rank int) bool { return r.callers[rank].Protocol == "" }, len(r.callers), patience)
}

// answer is what all who are there are told.
func (r *roll) answer(id func() ([]byte, error)) answer {
	a := answer{Protocol: protocol}
	for _, c := range r.callers {
		if c.Cannot != "" && a.Why == "" {
			a.Why = fmt.Sprintf("rank %d: %s", c.Rank, c.Cannot)
		}
	}
	if a.Why == "" {
		var err error
		if a.ID, err = id(); err != nil {
			a.Error = "rank 0: " + err.Error()
		}
	}
	return a
}

// failure is the error in an answer, and that of one that nobody could mean.
func (a answer) failure() error {
	switch {
	case a.Error != "":
		return &kindError{ErrAborted, a.Error}
	case a.ID == nil && a.Why == "":
		return &kindError{ErrDiffers, "rank 0 has answered with neither a connection nor a reason"}
	}
	return nil
}

// meetTCP has the ranks meet at rank 0's host and port. id makes the fast connection's id, on rank 0.
func (l Launch) meetTCP(cannot string, id func() ([]byte, error), patience time.Duration) (answer, error) {
	if l.Rank > 0 {
		return l.ask(l.caller(cannot), askUntil(patience), patience)
	}
	deadline := time.Now().Add(patience)
	listener, err := net.Listen("tcp", l.listenAt())
	if err != nil {
		return answer{}, &kindError{ErrUnavailable, fmt.Sprintf("rank 0 waits for the others on port %d: %v; VPPS_PORT names another port", l.Port, err)}
	}
	defer listener.Close()
	return l.hear(listener, l.caller(cannot), id, deadline, patience)
}

// askUntil is a little later than rank 0 gives up, which says who is missing.
func askUntil(patience time.Duration) time.Time { return time.Now().Add(patience + patience/10) }

func (l Launch) address() string { return net.JoinHostPort(l.Host, strconv.Itoa(l.Port)) }

// listenAt is where rank 0 listens: only on this machine if all ranks are here.
func (l Launch) listenAt() string {
	if ip := net.ParseIP(l.Host); l.Host == "localhost" || ip.IsLoopback() {
		return l.address()
	}
	return net.JoinHostPort("", strconv.Itoa(l.Port))
}

// guest is a connection whose other end has said who it is.
type guest struct {
	net.Conn
	caller
}

// hear is rank 0's part: it waits for all ranks, and answers them.
func (l Launch) hear(listener net.Listener, own caller, id func() ([]byte, error), deadline time.Time, patience time.Duration) (answer, error) {
	guests, over := make(chan guest), make(chan struct{})
	defer close(over)
	go welcome(listener, guests, over, deadline)
	r, there := newRoll(own), []guest{}
	defer func() {
		for _, g := range there {
			g.Close()
		}
	}()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	var err error
	for err == nil && r.missing > 0 {
		select {
		case g := <-guests:
			if g.Run != own.Run {
				_ = say(g, answer{Protocol: protocol, Error: "rank 0 at " + l.address() + " belongs to another start of the program: VPPS_PORT names another port"}, deadline)
				g.Close()
				continue
			}
			there = append(there, g)
			err = r.add(g.caller)
		case <-timer.C:
			err = r.late(patience)
		}
	}
	a := answer{Protocol: protocol}
	if err != nil {
		a.Error = err.Error()
	} else if a = r.answer(id); a.Error != "" {
		err = a.failure()
	}
	for _, g := range there {
		_ = say(g, a, time.Now().Add(mostHearing)) // who is gone is missed in the next call
	}
	return a, err
}

// welcome takes connections, of which strangers may make some.
func welcome(listener net.Listener, guests chan<- guest, over <-chan struct{}, deadline time.Time) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(pause) // no more files, for example
			continue
		}
		go func() {
			g := guest{Conn: conn}
			_ = conn.SetDeadline(earlier(deadline, time.Now().Add(mostHearing)))
			if read(conn, &g.caller) == nil && g.Protocol == protocol {
				select {
				case guests <- g:
					return
				case <-over:
				}
			}
			conn.Close()
		}()
	}
}

// ask is the other ranks' part. Whatever else answers there, rank 0 may come yet.
func (l Launch) ask(own caller, deadline time.Time, patience time.Duration) (answer, error) {
	for {
		a, err := l.askOnce(own, deadline)
		if err == nil {
			return a, a.failure()
		}
		if time.Now().Add(pause).After(deadline) {
			return answer{}, &kindError{ErrAbsent, fmt.Sprintf("rank %d of %d found no rank 0 at %s within %v: %v; MASTER_ADDR names its machine, VPPS_PORT a port",
				l.Rank, l.Size, l.address(), patience, err)}
		}
		time.Sleep(pause)
	}
}

func (l Launch) askOnce(own caller, deadline time.Time) (a answer, err error) {
	conn, err := net.DialTimeout("tcp", l.address(), time.Until(earlier(deadline, time.Now().Add(mostHearing))))
	if err != nil {
		return a, err
	}
	defer conn.Close()
	if err = say(conn, own, deadline); err == nil {
		err = read(conn, &a)
	}
	if err == nil && a.Protocol != protocol {
		err = errors.New("another program answers there")
	}
	return a, err
}

func say(conn net.Conn, message any, deadline time.Time) error {
	_ = conn.SetDeadline(deadline)
	return json.NewEncoder(conn).Encode(message)
}

func read(conn net.Conn, message any) error {
	return json.NewDecoder(io.LimitReader(conn, mostMessage)).Decode(message)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
