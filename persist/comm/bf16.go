package comm

import "math"

// bfloat16: the upper half of a float's bits, for ranks that send fewer bytes.

// bf16 rounds to nearest, ties to even. NaN stays NaN; what is beyond the largest number becomes infinite.
func bf16(x float32) uint32 {
	b := math.Float32bits(x)
	if x != x {
		return b>>16 | 0x40 // quiet: the bits that are left may be 0
	}
	return (b + 0x7fff + b>>16&1) >> 16
}

// roundBF16 gives each element the nearest number that bfloat16 has.
func roundBF16(x []float32) {
	for i, v := range x {
		x[i] = math.Float32frombits(bf16(v) << 16)
	}
}

// packBF16 is elements as words, two in each.
func packBF16(x []float32) []uint32 {
	words := make([]uint32, wordsOfBF16(len(x)))
	for i, v := range x {
		words[i/2] |= bf16(v) << (16 * (i % 2))
	}
	return words
}

func unpackBF16(words []uint32, x []float32) {
	for i := range x {
		x[i] = math.Float32frombits(words[i/2] >> (16 * (i % 2)) << 16)
	}
}

// wordsOfBF16 is how many words n elements take.
func wordsOfBF16(n int) int { return (n + 1) / 2 }
