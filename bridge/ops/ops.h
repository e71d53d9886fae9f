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
	VPPS_OP(12, RANDOM_GUMBEL, "RandomGumbel", 0, 2) \
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
	VPPS_OP(32, ERF, "Erf", 1, 0) \
	VPPS_OP(33, LOG_GAMMA, "LogGamma", 1, 0) \
	VPPS_OP(34, LOG_SIGMOID, "LogSigmoid", 1, 0) \
	VPPS_OP(35, CUBE, "Cube", 1, 0) \
	VPPS_OP(36, EXPONENTIAL_LINEAR_UNIT, "ExponentialLinearUnit", 1, 2) \
	VPPS_OP(37, SIGMOID_LINEAR_UNIT, "SigmoidLinearUnit", 1, 1) \
	VPPS_OP(38, SOFT_SIGN, "SoftSign", 1, 0) \
	VPPS_OP(39, ROUND, "Round", 1, 1) \
	VPPS_OP(40, CEIL, "Ceil", 1, 1) \
	VPPS_OP(41, FLOOR, "Floor", 1, 1) \
	VPPS_OP(42, SCALE_GRADIENT, "ScaleGradient", 1, 1) \
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
	VPPS_OP(64, STD_DIMENSION, "StdDimension", 1, 3) \
	VPPS_OP(65, LOG_SUM_EXP, "LogSumExp", -1, 0) \
	VPPS_OP(66, LOG_SUM_EXP_DIMENSION, "LogSumExpDimension", 1, 1) \
	VPPS_OP(67, CUMULATIVE_SUM, "CumulativeSum", 1, 1) \
	VPPS_OP(68, MAX_DIMENSION, "MaxDimension", 1, 1) \
	VPPS_OP(69, MIN_DIMENSION, "MinDimension", 1, 1) \
	VPPS_OP(70, K_MAX_POOLING, "KMaxPooling", 1, 2) \
	VPPS_OP(71, ARGMAX, "Argmax", 1, 1) \
	VPPS_OP(72, FOLD_ROWS, "FoldRows", 1, 1) \
	VPPS_OP(73, WEIGHT_NORMALIZATION, "WeightNormalization", 2, 0) \
	VPPS_OP(80, AFFINE_TRANSFORM, "AffineTransform", -1, 0) \
	VPPS_OP(81, MATRIX_MULTIPLY, "MatrixMultiply", 2, 0) \
	VPPS_OP(82, TRANSPOSE, "Transpose", 1, 1) \
	VPPS_OP(83, TRACE_OF_PRODUCT, "TraceOfProduct", 2, 0) \
	VPPS_OP(84, MATRIX_INVERSE, "MatrixInverse", 1, 0) \
	VPPS_OP(85, LOG_DET, "LogDet", 1, 0) \
	VPPS_OP(86, INNER_PRODUCT3_D_1_D, "InnerProduct3D_1D", -1, 0) \
	VPPS_OP(87, INNER_PRODUCT3_D_1_D_1_D, "InnerProduct3D_1D_1D", -1, 0) \
	VPPS_OP(88, CIRCULAR_CONVOLUTION, "CircularConvolution", 2, 0) \
	VPPS_OP(89, CIRCULAR_CORRELATION, "CircularCorrelation", 2, 0) \
	VPPS_OP(90, FILTER1_D_NARROW, "Filter1DNarrow", 2, 0) \
	VPPS_OP(91, KMHN_GRAM, "KMHNGram", 1, 1) \
	VPPS_OP(92, CONV2_D, "Conv2D", -1, 3) \
	VPPS_OP(93, MAX_POOLING2_D, "MaxPooling2D", 1, 5) \
	VPPS_OP(96, CONCATENATE, "Concatenate", -1, 1) \
	VPPS_OP(97, CONCATENATE_TO_BATCH, "ConcatenateToBatch", -1, 0) \
	VPPS_OP(98, PICK_ELEMENT, "PickElement", 1, 3) \
	VPPS_OP(99, PICK_RANGE, "PickRange", 1, 3) \
	VPPS_OP(100, PICK_BATCH_ELEMENTS, "PickBatchElements", 1, 2) \
	VPPS_OP(101, SELECT_ROWS, "SelectRows", 1, 2) \
	VPPS_OP(102, SELECT_COLS, "SelectCols", 1, 2) \
	VPPS_OP(103, STRIDED_SELECT, "StridedSelect", 1, 15) \
	VPPS_OP(112, SOFTMAX, "Softmax", 1, 1) \
	VPPS_OP(113, LOG_SOFTMAX, "LogSoftmax", 1, 0) \
	VPPS_OP(114, PICK_NEG_LOG_SOFTMAX, "PickNegLogSoftmax", 1, 1) \
	VPPS_OP(115, HINGE, "Hinge", 1, 2) \
	VPPS_OP(116, BINARY_LOG_LOSS, "BinaryLogLoss", 2, 0) \
	VPPS_OP(117, RESTRICTED_LOG_SOFTMAX, "RestrictedLogSoftmax", 1, 2) \
	VPPS_OP(118, L1_DISTANCE, "L1Distance", 2, 0) \
	VPPS_OP(119, HUBER_DISTANCE, "HuberDistance", 2, 1) \
	VPPS_OP(120, PAIRWISE_RANK_LOSS, "PairwiseRankLoss", 2, 1) \
	VPPS_OP(121, POISSON_REGRESSION_LOSS, "PoissonRegressionLoss", 1, 1) \
	VPPS_OP(122, HINGE_DIM, "HingeDim", 1, 4) \
	VPPS_OP(123, SPARSEMAX, "Sparsemax", 1, 0) \
	VPPS_OP(124, SPARSEMAX_LOSS, "SparsemaxLoss", 1, 2) \
	VPPS_OP(125, CONSTRAINED_SOFTMAX, "ConstrainedSoftmax", 2, 0) \
	VPPS_OP(128, VANILLA_LSTM_GATES, "VanillaLSTMGates", -1, 1) \
	VPPS_OP(129, VANILLA_LSTMC, "VanillaLSTMC", 2, 0) \
	VPPS_OP(130, VANILLA_LSTMH, "VanillaLSTMH", 2, 0) \
	VPPS_OP(131, VANILLA_LSTM_GATES_DROPOUT, "VanillaLSTMGatesDropout", -1, 1) \
	VPPS_OP(144, SIN, "Sin", 1, 0) \
	VPPS_OP(145, COS, "Cos", 1, 0) \
	VPPS_OP(146, TAN, "Tan", 1, 0) \
	VPPS_OP(147, ASIN, "Asin", 1, 0) \
	VPPS_OP(148, ACOS, "Acos", 1, 0) \
	VPPS_OP(149, ATAN, "Atan", 1, 0) \
	VPPS_OP(150, SINH, "Sinh", 1, 0) \
	VPPS_OP(151, COSH, "Cosh", 1, 0) \
	VPPS_OP(152, ASINH, "Asinh", 1, 0) \
	VPPS_OP(153, ACOSH, "Acosh", 1, 0) \
	VPPS_OP(154, ATANH, "Atanh", 1, 0) \
	VPPS_OP(160, DROPOUT_DIM, "DropoutDim", 1, 2) \
	VPPS_OP(161, DROPOUT_BATCH, "DropoutBatch", 1, 1) \
	VPPS_OP(162, BLOCK_DROPOUT, "BlockDropout", 1, 1) \


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
	SAME(ERF) \
	SAME(LOG_GAMMA) \
	SAME(LOG_SIGMOID) \
	SAME(CUBE) \
	SAME(EXPONENTIAL_LINEAR_UNIT) \
	SAME(SIGMOID_LINEAR_UNIT) \
	SAME(ROUND) \
	SAME(CEIL) \
	SAME(FLOOR) \
	SAME(SCALE_GRADIENT) \
	SAME(SIN) \
	SAME(COS) \
	SAME(TAN) \
	SAME(ASIN) \
	SAME(ACOS) \
	SAME(ATAN) \
	SAME(SINH) \
	SAME(COSH) \
	SAME(ASINH) \
	SAME(ACOSH) \
	SAME(ATANH) \


enum vpps_op {
#define VPPS_OP(code, NAME, name, args, attrs) VPPS_OP_##NAME = code,
	VPPS_OPS(VPPS_OP)
#undef VPPS_OP
};

#endif
