package isa

// What a processor of a build with clocks (VPPS_PROFILE=1) leaves of a launch: a record of ClockWords
// words of 64 bits, written by jit/kernel/clocks.h. Ticks are of the processor's own counter; begin
// and end, which are nanoseconds, tell how long one is.
const (
	ClockBegin    = iota                                   // nanoseconds of the device's clock
	ClockEnd                                               // 0: the launch was skipped
	ClockTicks                                             // from begin to end
	ClockFetch                                             // ticks between instructions: fetching and decoding
	ClockLoaded                                            // floats of matrices taken into registers
	ClockUpdated                                           // floats of parameters that Update read
	ClockStreamed                                          // floats of parameters that other instructions read, again for each use
	ClockLast                                              // the interpreter's own: when the last step ended,
	ClockCell                                              // what that step is counted under,
	ClockBlocked                                           // and whether it is a wait that goes on
	ClockNoted                                             // levels that are noted, from ClockLevels on
	ClockDone                                              // the interpreter's own: the opcodes since the last wait, a byte each, the last eight
	ClockCells                                             // ticks by phase and opcode; of the start under Halt
	ClockCounts   = ClockCells + int(Phases)*int(opcodes)  // instructions, likewise
	ClockLevels   = ClockCounts + int(Phases)*int(opcodes) // what follows a GPU's processor has in the host's memory
	ClockWords    = ClockLevels + LevelWords*MostLevels
)

// A level of a record: what the processor did up to a signal. Levels beyond the first MostLevels are not noted.
const (
	LevelBarrier   = iota // the signal's
	LevelSignalled        // nanoseconds of the device's clock when it had been given
	LevelDone             // the opcodes since the wait before, a byte each, the last one lowest; of more than eight the last ones
	LevelWords
	MostLevels = 2048
)

// Opcodes is how many opcodes there are.
const Opcodes = int(opcodes)

// ClockCellOf is where a record has the ticks of a phase's instructions of an opcode.
func ClockCellOf(p Phase, op Opcode) int { return ClockCells + int(p)*Opcodes + int(op) }
