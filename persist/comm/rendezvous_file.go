package comm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The same meeting by files that all processes see. Rank k writes FILE.k, rank 0 the answer FILE, with the nonces of those
// whom it answers. Files of an earlier start have other nonces: rank 0 answers anew until each rank has taken its own away.

// meetFile is meetTCP by files.
func (l Launch) meetFile(file, cannot string, id func() ([]byte, error), patience time.Duration) (answer, error) {
	if l.Rank > 0 {
		return askByFile(file, l.caller(cannot), askUntil(patience), patience)
	}
	return hearByFile(file, l.caller(cannot), id, time.Now().Add(patience), patience)
}

func nameOf(file string, rank int) string { return fmt.Sprintf("%s.%d", file, rank) }

func hearByFile(file string, own caller, id func() ([]byte, error), deadline time.Time, patience time.Duration) (a answer, err error) {
	for ; ; time.Sleep(pause) {
		r, err := rollOfFiles(file, own)
		switch {
		case err == nil && r.missing == 0 && !slices.Equal(r.nonces, a.Nonces): // all are there, or others than before
			a = r.answer(id)
			a.Nonces = r.nonces
			if err := write(file, a); err != nil {
				return a, err
			}
		case a.Nonces != nil && len(r.nonces) == 0: // all have read the answer
			os.Remove(file)
			return a, a.failure()
		}
		if time.Now().Before(deadline) {
			continue
		}
		if err == nil {
			err = r.late(patience)
		}
		_ = write(file, answer{Protocol: protocol, Nonces: r.nonces, Error: err.Error()})
		return a, err
	}
}

// rollOfFiles reads who is there. The error is of a rank that cannot be one of this start; its file may be an older one.
func rollOfFiles(file string, own caller) (*roll, error) {
	r := newRoll(own)
	var wrong error
	for rank := 1; rank < own.Size; rank++ {
		var c caller
		if load(nameOf(file, rank), &c) != nil || c.Protocol != protocol || c.Run != own.Run {
			continue
		}
		r.nonces = append(r.nonces, c.Nonce)
		if err := r.add(c); err != nil {
			wrong = err
		}
	}
	return r, wrong
}

func askByFile(file string, own caller, deadline time.Time, patience time.Duration) (a answer, err error) {
	mine := nameOf(file, own.Rank)
	if err := write(mine, own); err != nil {
		return a, err
	}
	for ; ; time.Sleep(pause) {
		a = answer{}
		if load(file, &a) == nil && a.Protocol == protocol && slices.Contains(a.Nonces, own.Nonce) {
			os.Remove(mine)
			return a, a.failure()
		}
		var there caller
		if load(mine, &there) == nil && there.Nonce != own.Nonce {
			return a, &kindError{ErrDiffers, fmt.Sprintf("two processes say that they are rank %d of %d: each rank is one process", own.Rank, own.Size)}
		}
		if !time.Now().Before(deadline) {
			os.Remove(mine)
			return a, &kindError{ErrAbsent, fmt.Sprintf("rank %d of %d found no answer of rank 0 in %s within %v: VPPS_COMM_FILE names one file that all ranks see", own.Rank, own.Size, file, patience)}
		}
	}
}

// write puts a message in place of a file, whole.
func write(file string, message any) error {
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

func load(file string, message any) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Size() > mostMessage {
		return fs.ErrInvalid
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, message)
}
