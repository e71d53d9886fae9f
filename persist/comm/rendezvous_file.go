package comm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// The same meeting by files that all processes see. Rank 0 writes FILE with a nonce. Rank k writes FILE.k with that, and a
// nonce of its own. Rank 0 writes the answer with all nonces into FILE, and each rank takes its own file away. Files of an
// earlier start have other nonces, so they do not count.

// meetFile is meetTCP by files.
func (l Launch) meetFile(file, cannot string, id func() ([]byte, error), patience time.Duration) (answer, error) {
	if l.Rank > 0 {
		return askByFile(file, l.caller(cannot), askUntil(patience), patience)
	}
	return hearByFile(file, l.caller(cannot), id, time.Now().Add(patience), patience)
}

func nameOf(file string, rank int) string { return fmt.Sprintf("%s.%d", file, rank) }

func hearByFile(file string, own caller, id func() ([]byte, error), deadline time.Time, patience time.Duration) (answer, error) {
	a := answer{Protocol: protocol, Start: own.Nonce}
	err := write(file, a)
	r := newRoll(own)
	for ; err == nil && r.missing > 0; time.Sleep(pause) {
		if r, err = rollOfFiles(file, own); err != nil || r.missing == 0 {
			break
		}
		var there answer
		switch {
		case load(file, &there) == nil && there.Start != own.Nonce:
			return a, &kindError{ErrDiffers, fmt.Sprintf("%s is in use by another start of the program, or two processes say that they are rank 0: VPPS_COMM_FILE names a file of one start", file)}
		case !time.Now().Before(deadline):
			err = r.late(patience)
		}
	}
	if err != nil {
		a.Error = err.Error()
	} else if a = r.answer(id); a.Error != "" {
		err = a.failure()
	}
	a.Start, a.Nonces = own.Nonce, r.nonces
	if err := write(file, a); err != nil {
		return a, err
	}
	if err != nil {
		return a, err // the file stays for those who have not read it
	}
	for ; len(r.nonces) > 0 && time.Now().Before(deadline); time.Sleep(pause) { // who is gone is missed in the next call
		r, _ = rollOfFiles(file, own)
	}
	os.Remove(file)
	return a, nil
}

// rollOfFiles reads who is there. The error is of a rank that cannot be one of this start.
func rollOfFiles(file string, own caller) (*roll, error) {
	r := newRoll(own)
	var wrong error
	for rank := 1; rank < own.Size; rank++ {
		var c caller
		if load(nameOf(file, rank), &c) != nil || c.Protocol != protocol || c.Start != own.Nonce {
			continue
		}
		r.nonces = append(r.nonces, c.Nonce)
		if err := r.add(c); err != nil {
			wrong = err
		}
	}
	return r, wrong
}

func askByFile(file string, own caller, deadline time.Time, patience time.Duration) (answer, error) {
	if err := replaceable(file); err != nil {
		return answer{}, err
	}
	mine := nameOf(file, own.Rank)
	for ; ; time.Sleep(pause) {
		var a answer
		if load(file, &a) == nil && a.Protocol == protocol {
			if slices.Contains(a.Nonces, own.Nonce) {
				os.Remove(mine)
				return a, a.failure()
			}
			var there caller
			if own.Start != "" && load(mine, &there) == nil && there.Nonce != own.Nonce {
				return a, &kindError{ErrDiffers, fmt.Sprintf("two processes say that they are rank %d of %d: each rank is one process", own.Rank, own.Size)}
			}
			if a.Start != own.Start {
				own.Start = a.Start
				if err := write(mine, own); err != nil {
					return a, err
				}
			}
		}
		if !time.Now().Before(deadline) {
			os.Remove(mine)
			return a, &kindError{ErrAbsent, fmt.Sprintf("rank %d of %d found no answer of rank 0 in %s within %v: VPPS_COMM_FILE names one file that all ranks see", own.Rank, own.Size, file, patience)}
		}
	}
}

// replaceable is an error if something else than a file has the name: a pipe, a device, a folder.
func replaceable(file string) error {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return &kindError{ErrUnavailable, fmt.Sprintf("VPPS_COMM_FILE: %s is no regular file: name one that need not exist", file)}
	}
	return nil
}

// write puts a message in place of a file, whole.
func write(file string, message any) error {
	if err := replaceable(file); err != nil {
		return err
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*~")
	if err != nil {
		return &kindError{ErrUnavailable, fmt.Sprintf("VPPS_COMM_FILE: %v", err)}
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		os.Remove(f.Name())
		return &kindError{ErrUnavailable, fmt.Sprintf("VPPS_COMM_FILE: %v", err)}
	}
	return nil
}

// load reads a message. It waits for nobody, as opening a pipe would.
func load(file string, message any) error {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > mostMessage {
		return fs.ErrInvalid
	}
	text, err := io.ReadAll(io.LimitReader(f, mostMessage))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, message)
}
