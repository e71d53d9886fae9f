package kernel

// pace finds out whether scripts of one length run faster on all threads or on one alone: small
// ones spend more on waiting for each other than they gain, and so do all where other programs
// want the cores. Which is tried when depends on time, results do not.
type pace struct {
	cost       [2]float64 // nanoseconds per word, smoothed: of all threads, of one
	runs, next int        // next: the run that tries what lost
	interval   int
}

// alone says how the next run shall go.
func (p *pace) alone() bool {
	if p.runs < 4 { // the first of each also warms up
		return p.runs%2 == 1
	}
	better := p.cost[1] < p.cost[0]
	if p.runs >= p.next {
		return !better
	}
	return better
}

// took records a run. What lost is tried again, ever more seldom while it loses.
func (p *pace) took(alone bool, cost float64) {
	const often, seldom = 16, 256
	i := 0
	if alone {
		i = 1
	}
	if p.runs < 4 {
		p.cost[i] = cost
		p.interval = often
		p.next = 4 + often
	} else {
		tried := p.runs >= p.next
		p.cost[i] += (cost - p.cost[i]) / 4
		if tried {
			if p.cost[i] < p.cost[1-i] {
				p.interval = often
			} else {
				p.interval = min(2*p.interval, seldom)
			}
			p.next = p.runs + p.interval
		}
	}
	p.runs++
}
