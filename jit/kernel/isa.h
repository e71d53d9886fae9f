// Generated from persist/isa by go generate. The instruction set.
#pragma once

#define OP_HALT 0
#define OP_SIGNAL 1
#define OP_WAIT 2
#define OP_FILL 3
#define OP_MAP 4
#define OP_STRIDED 5
#define OP_CHAIN 6
#define OP_SUM 7
#define OP_PRODUCT 8
#define OP_PRODUCT_T 9
#define OP_OUTER 10
#define OP_GEMM 11
#define OP_ROW 12
#define OP_RANDOM 13
#define OP_NORM 14
#define OP_CLIP 15
#define OP_UPDATE 16

// Word offsets of the fixed fields, and where the items begin.
#define SIGNAL_BARRIER 2
#define SIGNAL_ITEMS 3
#define WAIT_BARRIER 2
#define WAIT_EXPECTED 3
#define WAIT_ITEMS 4
#define FILL_SEGMENTS 2
#define FILL_N 3
#define FILL_VALUE 4
#define FILL_ITEMS 5
#define MAP_SEGMENTS 2
#define MAP_N 3
#define MAP_P 4
#define MAP_Q 5
#define MAP_ITEMS 6
#define STRIDED_SEGMENTS 2
#define STRIDED_AXES 3
#define STRIDED_P 4
#define STRIDED_Q 5
#define STRIDED_ITEMS 6
#define CHAIN_N 2
#define CHAIN_OPERATIONS 3
#define CHAIN_ITEMS 4
#define SUM_SEGMENTS 2
#define SUM_N 3
#define SUM_SCALE 4
#define SUM_DST 5
#define SUM_RUNS 6
#define SUM_APART 7
#define SUM_Y 8
#define SUM_ITEMS 9
#define PRODUCT_SEGMENTS 2
#define PRODUCT_MATRIX 3
#define PRODUCT_SCALE 4
#define PRODUCT_BIAS 5
#define PRODUCT_BIAS_SCALE 6
#define PRODUCT_ITEMS 7
#define PRODUCT_T_SEGMENTS 2
#define PRODUCT_T_MATRIX 3
#define PRODUCT_T_SCALE 4
#define PRODUCT_T_APART 5
#define PRODUCT_T_ITEMS 6
#define OUTER_SEGMENTS 2
#define OUTER_MATRIX 3
#define OUTER_SCALE 4
#define OUTER_DST 5
#define OUTER_ITEMS 6
#define GEMM_SEGMENTS 2
#define GEMM_M 3
#define GEMM_N 4
#define GEMM_K 5
#define GEMM_C_ROW 6
#define GEMM_C_COL 7
#define GEMM_A_ROW 8
#define GEMM_A_COL 9
#define GEMM_B_ROW 10
#define GEMM_B_COL 11
#define GEMM_SCALE 12
#define GEMM_BIAS 13
#define GEMM_ITEMS 14
#define ROW_SEGMENTS 2
#define ROW_N 3
#define ROW_STRIDE 4
#define ROW_P 5
#define ROW_LINES 6
#define ROW_ITEMS 7
#define RANDOM_SEGMENTS 2
#define RANDOM_N 3
#define RANDOM_P 4
#define RANDOM_Q 5
#define RANDOM_SEED 6
#define RANDOM_GRAPH 7
#define RANDOM_FORWARD 8
#define RANDOM_FIRST 9
#define RANDOM_ITEMS 10
#define NORM_SEGMENTS 2
#define NORM_DST 3
#define NORM_ITEMS 4
#define CLIP_SEGMENTS 2
#define CLIP_PARTIALS 3
#define CLIP_N 4
#define CLIP_THRESHOLD 5
#define CLIP_RESULT 6
#define CLIP_LOSS 7
#define CLIP_ITEMS 8
#define UPDATE_SEGMENTS 2
#define UPDATE_RATE 3
#define UPDATE_P 4
#define UPDATE_Q 5
#define UPDATE_R 6
#define UPDATE_ITEMS 7

// Flags, in word 0 from bit 16 on.
#define FLAG_ACC 1
#define FLAG_SYNC 2
#define FLAG_BIAS 4
#define FLAG_LAST 8
#define FLAG_NOGRAD 16
#define FLAG_LISTED 32
#define FLAG_LOSS 64

#define SEG_PARAM 0
#define SEG_GRAD 1
#define SEG_TABLE 2
#define SEG_TGRAD 3
#define SEG_ACT 4
#define SEG_INPUT 5
#define SEG_RESULT 6
#define SEG_STATE 7
#define SEGMENTS 8

// Header and processor table.
#define HEAD_MAGIC 0
#define HEAD_PROCESSORS 1
#define HEAD_BARRIERS 2
#define HEAD_LISTS 3
#define HEAD_LIST_END 4
#define HEAD_COUNTERS 5
#define HEAD_INPUTS 6
#define HEAD_DEVICE 7
#define HEAD_TENSORS 8
#define HEAD_TENSOR_END 9
#define HEAD_WORDS 10
#define PROC_START 0
#define PROC_WORDS 1
#define TENSOR_WORDS 3
#define BARRIER_STRIDE 32
#define MAX_WORDS 1024
#define MAX_LISTED 1021
#define MAX_RUN 1024
#define MAX_SLOTS 32
#define CHAIN_READ 16
#define CHAIN_WRITTEN 32
#define CHAIN_OP_WORDS 3

// What a processor leaves that gives up: see persist/isa/stop.go.
#define STOP_CODE 0
#define STOP_PROCESSOR 1
#define STOP_WORD 2
#define STOP_BATCH 3
#define STOP_DETAIL 4
#define STOP_WORDS 9
#define STOPPED_NONE 0
#define STOPPED_LOST_SIGNAL 1
#define STOPPED_NO_INSTRUCTION 2
#define STOPPED_OUTSIDE_TENSORS 3
#define STOPPED_OUTSIDE_LISTS 4

// What clocks leave, by processor: see persist/isa/clocks.go.
#define PHASE_SHIFT 29
#define PHASE_GRADIENTS 3
#define OPCODES 17
#define CLOCK_BEGIN 0
#define CLOCK_END 1
#define CLOCK_TICKS 2
#define CLOCK_FETCH 3
#define CLOCK_LOADED 4
#define CLOCK_UPDATED 5
#define CLOCK_STREAMED 6
#define CLOCK_LAST 7
#define CLOCK_CELL 8
#define CLOCK_BLOCKED 9
#define CLOCK_NOTED 10
#define CLOCK_DONE 11
#define CLOCK_CELLS 12
#define CLOCK_COUNTS 97
#define CLOCK_LEVELS 182
#define CLOCK_WORDS 6326
#define LEVEL_WORDS 3
#define MOST_LEVELS 2048

// FN(NAME, inputs) of every element function.
#define ELEMENT_FUNCTIONS(FN) \
	FN(COPY, 1) \
	FN(SCALE, 1) \
	FN(ADD_CONST, 1) \
	FN(SUB_FROM, 1) \
	FN(TANH, 1) \
	FN(TANH_B, 2) \
	FN(LOGISTIC, 1) \
	FN(LOGISTIC_B, 2) \
	FN(RELU, 1) \
	FN(RELU_B, 2) \
	FN(EXP, 1) \
	FN(LOG, 1) \
	FN(SQRT, 1) \
	FN(SQRT_B, 2) \
	FN(SQUARE, 1) \
	FN(SQUARE_B, 2) \
	FN(ABS, 1) \
	FN(ABS_B, 2) \
	FN(ADD, 2) \
	FN(MUL, 2) \
	FN(DIV, 2) \
	FN(DIV_B, 3) \
	FN(POW, 2) \
	FN(POW_BX, 3) \
	FN(POW_BY, 3) \
	FN(MIN, 2) \
	FN(MIN_BX, 3) \
	FN(MIN_BY, 3) \
	FN(MAX, 2) \
	FN(MAX_BX, 3) \
	FN(MAX_BY, 3) \
	FN(SQUARE_DIFF, 2) \
	FN(SQUARE_DIFF_B, 3) \
	FN(BIN_LOG, 2) \
	FN(BIN_LOG_B, 3) \
	FN(MOMENT, 1) \
	FN(MOMENT_B, 2) \
	FN(MUL_DIV, 3) \
	FN(SIN, 1) \
	FN(SIN_B, 2) \
	FN(COS, 1) \
	FN(COS_B, 2) \
	FN(TAN, 1) \
	FN(TAN_B, 2) \
	FN(ASIN, 1) \
	FN(ASIN_B, 2) \
	FN(ACOS, 1) \
	FN(ATAN, 1) \
	FN(ATAN_B, 2) \
	FN(SINH, 1) \
	FN(SINH_B, 2) \
	FN(COSH, 1) \
	FN(COSH_B, 2) \
	FN(ASINH, 1) \
	FN(ASINH_B, 2) \
	FN(ACOSH, 1) \
	FN(ACOSH_B, 2) \
	FN(ATANH, 1) \
	FN(ATANH_B, 2) \
	FN(ERF, 1) \
	FN(ERF_B, 2) \
	FN(LOG_GAMMA, 1) \
	FN(LOG_GAMMA_B, 2) \
	FN(LOG_SIGMOID, 1) \
	FN(LOG_SIGMOID_B, 2) \
	FN(ELU, 1) \
	FN(ELU_B, 2) \
	FN(SILU, 1) \
	FN(SILU_B, 2) \
	FN(SOFT_SIGN, 1) \
	FN(SOFT_SIGN_B, 2) \
	FN(ROUND, 1) \
	FN(CEIL, 1) \
	FN(FLOOR, 1) \
	FN(POISSON, 1) \
	FN(POISSON_B, 2) \
	FN(HUBER, 2) \
	FN(HUBER_B, 3) \
	/* end */

#define FN_COPY 0
#define FN_SCALE 1
#define FN_ADD_CONST 2
#define FN_SUB_FROM 3
#define FN_TANH 4
#define FN_TANH_B 5
#define FN_LOGISTIC 6
#define FN_LOGISTIC_B 7
#define FN_RELU 8
#define FN_RELU_B 9
#define FN_EXP 10
#define FN_LOG 11
#define FN_SQRT 12
#define FN_SQRT_B 13
#define FN_SQUARE 14
#define FN_SQUARE_B 15
#define FN_ABS 16
#define FN_ABS_B 17
#define FN_ADD 18
#define FN_MUL 19
#define FN_DIV 20
#define FN_DIV_B 21
#define FN_POW 22
#define FN_POW_BX 23
#define FN_POW_BY 24
#define FN_MIN 25
#define FN_MIN_BX 26
#define FN_MIN_BY 27
#define FN_MAX 28
#define FN_MAX_BX 29
#define FN_MAX_BY 30
#define FN_SQUARE_DIFF 31
#define FN_SQUARE_DIFF_B 32
#define FN_BIN_LOG 33
#define FN_BIN_LOG_B 34
#define FN_MOMENT 35
#define FN_MOMENT_B 36
#define FN_MUL_DIV 37
#define FN_SIN 38
#define FN_SIN_B 39
#define FN_COS 40
#define FN_COS_B 41
#define FN_TAN 42
#define FN_TAN_B 43
#define FN_ASIN 44
#define FN_ASIN_B 45
#define FN_ACOS 46
#define FN_ATAN 47
#define FN_ATAN_B 48
#define FN_SINH 49
#define FN_SINH_B 50
#define FN_COSH 51
#define FN_COSH_B 52
#define FN_ASINH 53
#define FN_ASINH_B 54
#define FN_ACOSH 55
#define FN_ACOSH_B 56
#define FN_ATANH 57
#define FN_ATANH_B 58
#define FN_ERF 59
#define FN_ERF_B 60
#define FN_LOG_GAMMA 61
#define FN_LOG_GAMMA_B 62
#define FN_LOG_SIGMOID 63
#define FN_LOG_SIGMOID_B 64
#define FN_ELU 65
#define FN_ELU_B 66
#define FN_SILU 67
#define FN_SILU_B 68
#define FN_SOFT_SIGN 69
#define FN_SOFT_SIGN_B 70
#define FN_ROUND 71
#define FN_CEIL 72
#define FN_FLOOR 73
#define FN_POISSON 74
#define FN_POISSON_B 75
#define FN_HUBER 76
#define FN_HUBER_B 77
#define FN_COUNT 78
#define ROW_SOFTMAX 0
#define ROW_SOFTMAX_B 1
#define ROW_LOG_SOFTMAX 2
#define ROW_LOG_SOFTMAX_B 3
#define ROW_NEG_LOG_PICK 4
#define ROW_NEG_LOG_PICK_B 5
#define ROW_HINGE 6
#define ROW_HINGE_B 7
#define ROW_PICK 8
#define ROW_PICK_B 9
#define ROW_LOG_SUM_EXP 10
#define ROW_LOG_SUM_EXP_B 11
#define ROW_K_MAX 12
#define ROW_K_MAX_B 13
#define ROW_ARG_MAX 14
#define ROW_CUM_SUM 15
#define ROW_SPARSEMAX 16
#define ROW_SPARSEMAX_B 17
#define ROW_CONSTRAINED_SOFTMAX 18
#define ROW_CONSTRAINED_SOFTMAX_B 19
#define ROW_INVERT 20
#define ROW_COUNT 21
#define RANDOM_NORMAL 0
#define RANDOM_BERNOULLI 1
#define RANDOM_UNIFORM 2
#define RANDOM_NOISE 3
#define RANDOM_DROP 4
#define RANDOM_GUMBEL 5
#define RANDOM_COUNT 6
#define RULE_SGD 0
#define RULE_MOMENTUM 1
#define RULE_ADAGRAD 2
#define RULE_ADADELTA 3
#define RULE_RMSPROP 4
#define RULE_ADAM 5
#define RULE_AMSGRAD 6
#define RULE_EG 7
#define RULE_COUNT 8

// RULE(NAME, states, words of an item) of every update rule.
#define UPDATE_RULES(RULE) \
	RULE(SGD, 0, 3) \
	RULE(MOMENTUM, 1, 4) \
	RULE(ADAGRAD, 1, 4) \
	RULE(ADADELTA, 2, 5) \
	RULE(RMSPROP, 1, 4) \
	RULE(ADAM, 2, 5) \
	RULE(AMSGRAD, 3, 6) \
	RULE(EG, 1, 5) \
	/* end */

// ROW(NAME, rows, scalars, parts, label, words): which words of an item are rows, single elements
// and parts of rows, whether the last is a label, and how many they are.
#define ROW_FUNCTIONS(ROW) \
	ROW(SOFTMAX, 3, 0, 0, 0, 2) \
	ROW(SOFTMAX_B, 7, 0, 0, 0, 3) \
	ROW(LOG_SOFTMAX, 3, 0, 0, 0, 2) \
	ROW(LOG_SOFTMAX_B, 7, 0, 0, 0, 3) \
	ROW(NEG_LOG_PICK, 2, 5, 0, 1, 4) \
	ROW(NEG_LOG_PICK_B, 3, 12, 0, 1, 5) \
	ROW(HINGE, 2, 1, 0, 1, 3) \
	ROW(HINGE_B, 3, 4, 0, 1, 4) \
	ROW(PICK, 2, 1, 0, 1, 3) \
	ROW(PICK_B, 1, 2, 0, 1, 3) \
	ROW(LOG_SUM_EXP, 2, 1, 0, 0, 2) \
	ROW(LOG_SUM_EXP_B, 3, 12, 0, 0, 4) \
	ROW(K_MAX, 2, 0, 1, 1, 3) \
	ROW(K_MAX_B, 3, 0, 4, 1, 4) \
	ROW(ARG_MAX, 3, 0, 0, 0, 2) \
	ROW(CUM_SUM, 3, 0, 0, 0, 2) \
	ROW(SPARSEMAX, 3, 0, 0, 0, 2) \
	ROW(SPARSEMAX_B, 7, 0, 0, 0, 3) \
	ROW(CONSTRAINED_SOFTMAX, 7, 0, 0, 0, 3) \
	ROW(CONSTRAINED_SOFTMAX_B, 15, 0, 0, 0, 4) \
	ROW(INVERT, 14, 1, 0, 1, 5) \
	/* end */

// The first word of a script of this instruction set.
#define SCRIPT_MAGIC 0x9f8399b6u
