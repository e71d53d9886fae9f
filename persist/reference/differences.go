package reference

import "libvpps/bridge"

// Difference returns d loss/d parameter[element] by central differences.
func Difference(g *bridge.Graph, s *Surroundings, loss uint32, values [][]float64, param uint32, element int) (float64, error) {
	const h = 1e-5
	var at [2]float64
	for k, sign := range []float64{1, -1} {
		moved := append([]float64(nil), s.Params(param)...)
		moved[element] += sign * h
		t := &Surroundings{Draws: s.Draws, Params: func(id uint32) []float64 {
			if id == param {
				return moved
			}
			return s.Params(id)
		}}
		v, err := evaluate(g, t, loss, values)
		if err != nil {
			return 0, err
		}
		at[k] = v[loss][0]
	}
	return (at[0] - at[1]) / (2 * h), nil
}
