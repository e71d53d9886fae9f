package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// A table is a CSV file whose first line names the columns; they are taken by name.
type table struct {
	path    string
	header  []string
	columns map[string]int
	records []record
}

type record struct {
	line   int
	fields []string
}

// readTable reads a file that must have the columns needed.
func readTable(path string, needed ...string) (*table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseTable(path, f, needed...)
}

// parseTable reads a table from a stream; errors name it path.
func parseTable(path string, from io.Reader, needed ...string) (*table, error) {
	r := csv.NewReader(from)
	r.FieldsPerRecord = -1 // told apart below, with a better message
	t := &table{path: path, columns: map[string]int{}}
	for {
		fields, err := r.Read()
		if err == io.EOF {
			break
		}
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			return nil, fmt.Errorf("%s:%d: %v", path, parse.Line, parse.Err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %v", path, err)
		}
		line, _ := r.FieldPos(0)
		if t.header == nil {
			t.header = fields
			continue
		}
		if len(fields) != len(t.header) {
			return nil, fmt.Errorf("%s:%d: %d fields under %d columns", path, line, len(fields), len(t.header))
		}
		t.records = append(t.records, record{line, fields})
	}
	if t.header == nil {
		return nil, fmt.Errorf("%s:1: empty: the first line has to name the columns", path)
	}
	for k, name := range t.header {
		if _, twice := t.columns[name]; twice {
			return nil, fmt.Errorf("%s:1: two columns are named %q", path, name)
		}
		t.columns[name] = k
	}
	for _, name := range needed {
		if _, ok := t.columns[name]; !ok {
			return nil, fmt.Errorf("%s:1: there is no column %q", path, name)
		}
	}
	return t, nil
}

func (t *table) has(column string) bool {
	_, ok := t.columns[column]
	return ok
}

// each calls f for every record and returns the first error with file and line: f's own, or that of
// a field that was no number.
func (t *table) each(f func(c *cells)) error {
	for _, r := range t.records {
		c := &cells{t: t, r: r}
		if f(c); c.err != nil {
			return fmt.Errorf("%s:%d: %w", t.path, r.line, c.err)
		}
	}
	return nil
}

// cells are the fields of one record. The first that is wrong is remembered in err.
type cells struct {
	t   *table
	r   record
	err error
}

func (c *cells) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// text is "" where there is no such column.
func (c *cells) text(column string) string {
	if k, ok := c.t.columns[column]; ok {
		return c.r.fields[k]
	}
	return ""
}

// number may be NaN, as the loss of a model that diverged is.
func (c *cells) number(column string) float64 {
	text := c.text(column)
	x, err := strconv.ParseFloat(strings.TrimPrefix(text, "-"), 64)
	if err != nil {
		c.fail("column %s: %q is not a number", column, text)
	}
	if strings.HasPrefix(text, "-") {
		x = -x
	}
	return x
}

func (c *cells) notNegative(column string) float64 {
	x := c.number(column)
	if c.err == nil && !(x >= 0 && x <= math.MaxFloat64) {
		c.fail("column %s: %q is not a number from 0 on", column, c.text(column))
	}
	return x
}

func (c *cells) positive(column string) float64 {
	x := c.number(column)
	if c.err == nil && !(x > 0 && x <= math.MaxFloat64) {
		c.fail("column %s: %q is not a number above 0", column, c.text(column))
	}
	return x
}

// ifThere is 0 where there is no such column or nothing in it.
func (c *cells) ifThere(column string) float64 {
	if c.text(column) == "" {
		return 0
	}
	return c.notNegative(column)
}

func (c *cells) whole(column string) int {
	x := c.positive(column)
	if c.err == nil && (x != math.Floor(x) || x > 1e9) {
		c.fail("column %s: %q is not a whole number", column, c.text(column))
	}
	return int(x)
}
