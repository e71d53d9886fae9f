// Matrices as text.
#ifndef DYNETSHIM_PRINT_H
#define DYNETSHIM_PRINT_H

#include <iosfwd>

namespace dynet {

// Prints column-major values by rows, as wide as the widest, with the stream's format.
void print_matrix(std::ostream &os, const float *values, unsigned rows, unsigned columns);

} // namespace dynet
#endif
