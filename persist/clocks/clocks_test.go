package clocks

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"libvpps/persist/isa"
)

// record is of a processor whose counter ticks four times a nanosecond.
func record(begin, end uint64, cells map[int]uint64) []uint64 {
	r := make([]uint64, isa.ClockWords)
	r[isa.ClockBegin], r[isa.ClockEnd], r[isa.ClockTicks] = begin, end, 4*(end-begin)
	for at, ns := range cells {
		r[at] = 4 * ns
	}
	return r
}

func TestALaunchIsDividedAmongItsParts(t *testing.T) {
	product := isa.ClockCellOf(isa.InForward, isa.Product)
	wait := isa.ClockCellOf(isa.InBackward, isa.Wait)
	update := isa.ClockCellOf(isa.InUpdate, isa.Update)
	a := record(1000, 1100, map[int]uint64{product: 60, wait: 10, isa.ClockFetch: 30})
	b := record(1010, 1080, map[int]uint64{product: 20, wait: 40, update: 10})
	a[isa.ClockLoaded], b[isa.ClockUpdated], b[isa.ClockStreamed] = 5, 7, 9
	a[product-isa.ClockCells+isa.ClockCounts], b[product-isa.ClockCells+isa.ClockCounts] = 2, 1
	skipped := make([]uint64, isa.ClockWords)

	var s Sum
	s.Add(skipped)
	require.Zero(t, s.Launches)
	for range 2 {
		s.Add(append(append(append([]uint64{}, a...), b...), skipped...))
	}
	require.EqualValues(t, 2, s.Launches)
	require.Equal(t, 2, s.Processors)
	require.Equal(t, Time{80, 120}, s.Parts[Forward])
	require.Equal(t, Time{10, 20}, s.Parts[Update])
	require.Equal(t, Time{50, 80}, s.Parts[Waiting])
	require.Equal(t, Time{30, 60}, s.Parts[Fetch])
	require.Equal(t, Time{30, 60}, s.Parts[Idle], "30 ns of 100 for the one that is not there all the time")
	require.Equal(t, Time{120, 180}, s.Parts[Busy])
	require.EqualValues(t, 6, s.Cells[isa.InForward][isa.Product].Count)
	require.EqualValues(t, 40, s.Loaded)
	require.EqualValues(t, 56, s.Updated)
	require.EqualValues(t, 72, s.Streamed)
	require.Equal(t, "phase,operation,instructions,mean_ns,max_ns\n"+
		"forward,product,6,80,120\nbackward,wait,0,50,80\nupdate,update,0,10,20\n", s.Table())
	require.Equal(t, `  share      seconds  instructions  us of each  phase      operation
  40.0%       0.0000             6        0.03  forward    product
  25.0%       0.0000                            backward   wait
  15.0%       0.0000                                       between instructions
  15.0%       0.0000                                       idle
   5.0%       0.0000                            update     update
`, strings.Join(strings.SplitAfter(s.Profile(), "\n")[:6], ""))
}

// Two processors have level 0, which the second one ends; the first one alone has the level after.
func TestALevelIsWhatItsLastProcessorDid(t *testing.T) {
	level := func(r []uint64, barrier, signalled uint64, done ...isa.Opcode) {
		x := r[isa.ClockLevels+isa.LevelWords*int(r[isa.ClockNoted]):]
		r[isa.ClockNoted]++
		x[isa.LevelBarrier], x[isa.LevelSignalled] = barrier, signalled
		for _, op := range done {
			x[isa.LevelDone] = x[isa.LevelDone]<<8 | uint64(op)
		}
	}
	a, b := record(1000, 1100, nil), record(1010, 1080, nil)
	level(a, 7, 1020, isa.Product)
	level(b, 7, 1030, isa.Sum, isa.Chain)
	level(a, 9, 1090, isa.Map)
	var s Sum
	require.Empty(t, s.LevelProfile())
	for range 2 {
		s.Add(append(slices.Clone(a), b...))
	}
	require.Equal(t, []Level{{"map", 2, 2, 120}, {"sum chain", 2, 4, 60}}, s.Levels())
	require.Equal(t, `  share      seconds        levels  us of each  processors  what the last processor of a level did there
  66.7%       0.0000             2        0.06           1  map
  33.3%       0.0000             2        0.03           2  sum chain
`, s.LevelProfile())
	for range isa.MostLevels - 2 {
		level(a, 9, 1090, isa.Map)
	}
	s.Add(append(slices.Clone(a), b...))
	require.Contains(t, s.LevelProfile(), "first 2048 levels")
}
