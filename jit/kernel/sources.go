package kernel

import "embed"

// Sources are the files that the GPU's kernel is made of.
//
//go:embed device.h isa.h math.h special.h formulas.h philox.h processor.h elementwise.h team.h strided.h sum.h chain.h rows.h random.h parts_gpu.h gemm_tiles.h gemm_blocks.h gemm.h outer_blocks.h update.h check.h gpu.h bulk_gpu.h clocks.h tile_gpu.h matrix_gpu.h matrix_stream.h matrix_vector.h interpreter.h entry.h
var Sources embed.FS
