// A bag-of-words classifier: softmax regression on the words of a sentence.
package main

import "math"

type bagModel struct{ weights map[string]*[5]float64 }

func newBagModel() *bagModel { return &bagModel{map[string]*[5]float64{}} }

func (m *bagModel) row(word string) *[5]float64 {
	if m.weights[word] == nil {
		m.weights[word] = new([5]float64)
	}
	return m.weights[word]
}

func (m *bagModel) scores(b bag) (s [5]float64) {
	for _, word := range append([]string{"<bias>"}, b.words...) {
		for k, w := range m.row(word) {
			s[k] += w
		}
	}
	return s
}

func (m *bagModel) learn(b bag, rate float64) {
	s := m.scores(b)
	var sum float64
	for k := range s {
		s[k] = math.Exp(s[k])
		sum += s[k]
	}
	for _, word := range append([]string{"<bias>"}, b.words...) {
		row := m.row(word)
		for k := range row {
			g := s[k] / sum
			if k == b.label {
				g--
			}
			row[k] -= rate * g
		}
	}
}

func (m *bagModel) accuracy(bs []bag) float64 {
	right := 0
	for _, b := range bs {
		s, best := m.scores(b), 0
		for k := range s {
			if s[k] > s[best] {
				best = k
			}
		}
		if best == b.label {
			right++
		}
	}
	return float64(right) / float64(len(bs))
}

func largestClass(bs []bag) float64 {
	var n [5]int
	for _, b := range bs {
		n[b.label]++
	}
	most := 0
	for _, c := range n {
		most = max(most, c)
	}
	return float64(most) / float64(len(bs))
}
