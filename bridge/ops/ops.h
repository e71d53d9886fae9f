/* Generated from ops.go by go generate. The operations of the wire format. */
#ifndef VPPS_OPS_H
#define VPPS_OPS_H

/* VPPS_OP(code, NAME, class, arguments or -1, attribute words) */
#define VPPS_OPS(VPPS_OP) \
	VPPS_OP(1, INPUT_NODE, "InputNode", 0, 1) \
	VPPS_OP(2, SCALAR_INPUT_NODE, "ScalarInputNode", 0, 1) \
	VPPS_OP(3, SPARSE_INPUT_NODE, "SparseInputNode", 0, 3) \
	VPPS_OP(4, CONSTANT, "Constant", 0, 1) \
	VPPS_OP(5, PARAMETER_NODE, "ParameterNode", 0, 1) \
	VPPS_OP(6, CONST_PARAMETER_NODE, "ConstParameterNode", 0, 1) \
	VPPS_OP(7, LOOKUP_NODE, "LookupNode", 0, 2) \
	VPPS_OP(8, CONST_LOOKUP_NODE, "ConstLookupNode", 0, 2) \
	VPPS_OP(9, RANDOM_NORMAL, "RandomNormal", 0, 2) \
	VPPS_OP(10, RANDOM_BERNOULLI, "RandomBernoulli", 0, 2) \
	VPPS_OP(11, RANDOM_UNIFORM, "RandomUniform", 0, 2) \
	VPPS_OP(16, TANH, "Tanh", 1, 0) \
	VPPS_OP(17, LOGISTIC_SIGMOID, "LogisticSigmoid", 1, 0) \
	VPPS_OP(18, RECTIFY, "Rectify", 1, 0) \
	VPPS_OP(19, EXP, "Exp", 1, 0) \
	VPPS_OP(20, LOG, "Log", 1, 0) \
	VPPS_OP(21, SQRT, "Sqrt", 1, 0) \
	VPPS_OP(22, SQUARE, "Square", 1, 0) \
	VPPS_OP(23, ABS, "Abs", 1, 0) \
	VPPS_OP(24, NEGATE, "Negate", 1, 0) \
	VPPS_OP(25, CONSTANT_PLUS_X, "ConstantPlusX", 1, 1) \
	VPPS_OP(26, CONSTANT_MINUS_X, "ConstantMinusX", 1, 1) \
	VPPS_OP(27, CONST_SCALAR_MULTIPLY, "ConstScalarMultiply", 1, 1) \
	VPPS_OP(28, DROPOUT, "Dropout", 1, 1) \
	VPPS_OP(29, GAUSSIAN_NOISE, "GaussianNoise", 1, 1) \
	VPPS_OP(30, NO_BACKPROP, "NoBackprop", 1, 0) \
	VPPS_OP(31, RESHAPE, "Reshape", 1, 0) \
	VPPS_OP(48, CWISE_SUM, "CwiseSum", 2, 0) \
	VPPS_OP(49, CWISE_MULTIPLY, "CwiseMultiply", 2, 0) \
	VPPS_OP(50, CWISE_QUOTIENT, "CwiseQuotient", 2, 0) \
	VPPS_OP(51, POW, "Pow", 2, 0) \
	VPPS_OP(52, MIN, "Min", 2, 0) \
	VPPS_OP(53, MAX, "Max", 2, 0) \
	VPPS_OP(54, SUM, "Sum", -1, 0) \
	VPPS_OP(55, AVERAGE, "Average", -1, 0) \
	VPPS_OP(56, ADD_VECTOR_TO_ALL_COLUMNS, "AddVectorToAllColumns", 2, 0) \
	VPPS_OP(57, SUM_ELEMENTS, "SumElements", 1, 0) \
	VPPS_OP(58, SUM_DIMENSION, "SumDimension", 1, 2) \
	VPPS_OP(59, MOMENT_DIMENSION, "MomentDimension", 1, 4) \
	VPPS_OP(60, DOT_PRODUCT, "DotProduct", 2, 0) \
	VPPS_OP(61, SQUARED_EUCLIDEAN_DISTANCE, "SquaredEuclideanDistance", 2, 0) \
	VPPS_OP(62, SQUARED_NORM, "SquaredNorm", 1, 0) \
	VPPS_OP(63, L2_NORM, "L2Norm", 1, 0) \
	VPPS_OP(80, AFFINE_TRANSFORM, "AffineTransform", -1, 0) \
	VPPS_OP(81, MATRIX_MULTIPLY, "MatrixMultiply", 2, 0) \
	VPPS_OP(82, TRANSPOSE, "Transpose", 1, 1) \
	VPPS_OP(96, CONCATENATE, "Concatenate", -1, 1) \
	VPPS_OP(97, CONCATENATE_TO_BATCH, "ConcatenateToBatch", -1, 0) \
	VPPS_OP(98, PICK_ELEMENT, "PickElement", 1, 3) \
	VPPS_OP(99, PICK_RANGE, "PickRange", 1, 3) \
	VPPS_OP(100, PICK_BATCH_ELEMENTS, "PickBatchElements", 1, 2) \
	VPPS_OP(112, SOFTMAX, "Softmax", 1, 1) \
	VPPS_OP(113, LOG_SOFTMAX, "LogSoftmax", 1, 0) \
	VPPS_OP(114, PICK_NEG_LOG_SOFTMAX, "PickNegLogSoftmax", 1, 1) \
	VPPS_OP(115, HINGE, "Hinge", 1, 2) \
	VPPS_OP(116, BINARY_LOG_LOSS, "BinaryLogLoss", 2, 0) \
	VPPS_OP(117, RESTRICTED_LOG_SOFTMAX, "RestrictedLogSoftmax", 1, 2) \
	VPPS_OP(128, VANILLA_LSTM_GATES, "VanillaLSTMGates", -1, 1) \
	VPPS_OP(129, VANILLA_LSTMC, "VanillaLSTMC", 2, 0) \
	VPPS_OP(130, VANILLA_LSTMH, "VanillaLSTMH", 2, 0) \
	VPPS_OP(131, VANILLA_LSTM_GATES_DROPOUT, "VanillaLSTMGatesDropout", -1, 1) \


/* SAME(NAME): the result has the dim of the only argument, whatever the attributes are. */
#define VPPS_SAME_DIM(SAME) \
	SAME(TANH) \
	SAME(LOGISTIC_SIGMOID) \
	SAME(RECTIFY) \
	SAME(EXP) \
	SAME(LOG) \
	SAME(SQRT) \
	SAME(SQUARE) \
	SAME(ABS) \
	SAME(NEGATE) \
	SAME(CONSTANT_PLUS_X) \
	SAME(CONSTANT_MINUS_X) \
	SAME(CONST_SCALAR_MULTIPLY) \
	SAME(GAUSSIAN_NOISE) \
	SAME(NO_BACKPROP) \


enum vpps_op {
#define VPPS_OP(code, NAME, name, args, attrs) VPPS_OP_##NAME = code,
	VPPS_OPS(VPPS_OP)
#undef VPPS_OP
};

#endif
