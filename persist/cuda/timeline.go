package cuda

// When launches ran, by the host's clock. Events tell only the time between two of them, so a first
// one, which the host waits for, ties the device's time to the host's.

import "libvpps/gpu"

// timeline ties the device's time to a clock of the host, in nanoseconds.
type timeline struct {
	now    func() uint64
	launch func(batch uint32, begin, copied, done uint64)
	anchor gpu.Event // passed at host time at
	at     float64
	next   gpu.Event // the next anchor, being put on the stream behind the launch of a slot
	behind *staging
}

// apart is the time in nanoseconds for which an anchor is used: events give a float32 of milliseconds.
const apart = 4e9

// Trace has every launch told, in order: when it began to wait for its script's copy, when that was
// there, and when its kernel ended.
func (l *launches) Trace(now func() uint64, launch func(batch uint32, begin, copied, done uint64)) error {
	if err := l.MeasureTimes(); err != nil {
		return err
	}
	t := &timeline{now: now, launch: launch}
	for _, event := range []*gpu.Event{&t.anchor, &t.next} {
		var err error
		if *event, err = l.dev.NewTimedEvent(); err != nil {
			return err
		}
	}
	l.timeline = t
	if err := t.anchor.Record(); err != nil {
		return err
	}
	if err := t.anchor.Wait(); err != nil {
		return err
	}
	t.at = float64(now())
	return nil
}

// MeasureTimes measures the device's time from the next launch on.
func (l *launches) MeasureTimes() error {
	l.times = true
	return l.timeLaunches(true)
}

// timeLaunches gives the slots marks with times, or without, which cost the device less.
func (l *launches) timeLaunches(on bool) error {
	if l.timed == on {
		return nil
	}
	for i := range l.staging {
		t := &l.staging[i]
		if err := l.finish(t); err != nil {
			return err
		}
		fresh := staging{}
		l.timed = on
		err := l.marks(&fresh)
		l.timed = !on
		if err != nil {
			return err
		}
		l.unmark(t)
		t.begin, t.copied, t.done = fresh.begin, fresh.copied, fresh.done
	}
	l.timed = on
	return nil
}

// BatchUS is the device's time for a batch, script's copy included, that has been waited for while
// plans are measured.
func (l *launches) BatchUS(batch uint32) float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.staging {
		if t := &l.staging[i]; t.batch == batch {
			return t.us
		}
	}
	return 0
}

func (t *timeline) close() {
	if t != nil {
		t.anchor.Close()
		t.next.Close()
	}
}

// before notes when the host began to put a launch on the stream.
func (t *timeline) before(s *staging) {
	if t != nil {
		s.put = t.now()
	}
}

// after puts a new anchor behind a launch if it is time.
func (t *timeline) after(s *staging) error {
	if t == nil || t.behind != nil || float64(s.put)-t.at < apart {
		return nil
	}
	t.behind = s
	return t.next.Record()
}

// passed tells of a launch that is over. The device's clock is not the host's: a launch cannot have
// begun before the host asked for it, nor end after the host has seen its end.
func (t *timeline) passed(s *staging) error {
	if t == nil {
		return nil
	}
	seen := float64(t.now())
	var us [3]float64
	for i, event := range []gpu.Event{s.begin, s.copied, s.done} {
		var err error
		if us[i], err = event.Elapsed(t.anchor); err != nil {
			return err
		}
	}
	t.at += max(0, float64(s.put)-(t.at+1e3*us[0]))
	t.at -= max(0, t.at+1e3*us[2]-seen)
	t.launch(s.batch, t.host(us[0]), t.host(us[1]), t.host(us[2]))
	return t.move(s)
}

func (t *timeline) host(us float64) uint64 { return uint64(max(t.at+1e3*us, 0)) }

// move takes the new anchor when the launch before it is over.
func (t *timeline) move(s *staging) error {
	if t.behind != s {
		return nil
	}
	t.behind = nil
	if err := t.next.Wait(); err != nil {
		return err
	}
	us, err := t.next.Elapsed(t.anchor)
	if err != nil {
		return err
	}
	t.at += 1e3 * us
	t.anchor, t.next = t.next, t.anchor
	return nil
}
