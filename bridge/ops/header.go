package ops

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
)

// Header returns the text of ops.h: the codes as VPPS_OP_* and, for each code,
// its argument and attribute counts. A test fails when the file is stale.
func Header() []byte {
	var b bytes.Buffer
	b.WriteString("/* Generated from ops.go by go generate. The operations of the wire format. */\n")
	b.WriteString("#ifndef VPPS_OPS_H\n#define VPPS_OPS_H\n\n")
	b.WriteString("/* VPPS_OP(code, NAME, class, arguments or -1, attribute words) */\n#define VPPS_OPS(VPPS_OP) \\\n")
	for c, op := range Table {
		if op.Name != "" {
			fmt.Fprintf(&b, "\tVPPS_OP(%d, %s, %q, %d, %d) \\\n", c, upperSnake(op.Name), op.Name, op.Args, len(op.Attrs))
		}
	}
	b.WriteString("\n\n/* SAME(NAME): the result has the dim of the only argument, whatever the attributes are. */\n#define VPPS_SAME_DIM(SAME) \\\n")
	for _, op := range Table {
		if op.Same {
			fmt.Fprintf(&b, "\tSAME(%s) \\\n", upperSnake(op.Name))
		}
	}
	b.WriteString("\n\nenum vpps_op {\n#define VPPS_OP(code, NAME, name, args, attrs) VPPS_OP_##NAME = code,\n\tVPPS_OPS(VPPS_OP)\n#undef VPPS_OP\n};\n")
	b.WriteString("\n#endif\n")
	return b.Bytes()
}

// upperSnake turns a class name into a C constant: LogSoftmax, LOG_SOFTMAX.
func upperSnake(s string) string {
	var b strings.Builder
	r := []rune(s)
	for i, c := range r {
		if i > 0 && unicode.IsUpper(c) && (unicode.IsLower(r[i-1]) || unicode.IsDigit(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}
