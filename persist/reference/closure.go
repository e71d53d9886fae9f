package reference

// Closure makes a relation transitive: m[i][j] becomes true if a chain leads from i to j.
func Closure(m [][]bool) {
	for k := range m {
		for i := range m {
			if m[i][k] {
				for j := range m {
					m[i][j] = m[i][j] || m[k][j]
				}
			}
		}
	}
}
