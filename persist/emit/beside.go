package emit

import "sync"

// beside is work of goroutines of their own, of one script. A panic of theirs becomes one of who waits for them.
type beside struct {
	sync.WaitGroup
	mu    sync.Mutex
	fault any
}

// do starts work.
func (b *beside) do(work func()) {
	b.Go(func() {
		defer func() {
			if x := recover(); x != nil {
				b.mu.Lock()
				b.fault = x
				b.mu.Unlock()
			}
		}()
		work()
	})
}

// end waits until all work is done.
func (b *beside) end() {
	b.Wait()
	if x := b.fault; x != nil {
		b.fault = nil
		panic(x)
	}
}
