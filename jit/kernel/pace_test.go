package kernel

import "testing"

// run lets a pace decide n times; costs are those of all threads and of one alone.
func run(p *pace, n int, together, alone float64) (shared int) {
	for range n {
		if a := p.alone(); a {
			p.took(a, alone)
		} else {
			p.took(a, together)
			shared++
		}
	}
	return shared
}

func TestPaceTakesWhatIsFaster(t *testing.T) {
	var p pace
	if n := run(&p, 1000, 2, 1); n > 20 {
		t.Errorf("all threads were taken %d times of 1000 though one is faster", n)
	}
	if n := run(&p, 1000, 1, 2); n < 500 {
		t.Errorf("all threads were taken %d times of 1000 after they became faster", n)
	}
	if n := run(&p, 1000, 1, 2); n < 980 {
		t.Errorf("all threads were taken only %d times of 1000 though they are faster", n)
	}
}
