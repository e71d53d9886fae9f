package persist

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The values of a graph's parameter nodes stay as they were evaluated, whatever changes the parameters.
func TestParameterNodesKeepTheirValues(t *testing.T) {
	for name, change := range map[string]func(m *threeCalls, loss uint32){
		"an update":          func(m *threeCalls, loss uint32) { m.backward(loss); m.update() },
		"a written value":    func(m *threeCalls, _ uint32) { require.NoError(m, m.WriteParameter(callsW, Values, 0, []float32{0.5})) },
		"a scaled parameter": func(m *threeCalls, _ uint32) { require.NoError(m, m.ScaleParameter(callsW, Values, 0.5)) },
	} {
		for _, device := range everyDevice {
			t.Run(device+"/"+name, func(t *testing.T) {
				m := newThreeCalls(t, device)
				m.step()
				_, loss := m.forward(2, 6)
				node := uint32(0) // of callsW
				before, parameter := m.value(node, 64), m.read(callsW, Values)
				require.Equal(t, parameter, before)
				change(m, loss)
				require.NotEqual(t, parameter, m.read(callsW, Values))
				require.Equal(t, before, m.value(node, 64))
			})
		}
	}
}
