package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A document collects a figure's tables.
type document struct{ text strings.Builder }

// say writes a paragraph, a list item or a heading, in lines of at most 120 characters.
func (d *document) say(format string, args ...any) {
	length, indent := 0, ""
	if strings.HasPrefix(format, "- ") {
		indent = "  " // of a list item's further lines
	}
	for _, word := range strings.Fields(fmt.Sprintf(format, args...)) {
		n := len([]rune(word))
		switch {
		case length == 0:
		case length+1+n > 120:
			d.text.WriteString("\n" + indent)
			length = len(indent)
		default:
			d.text.WriteString(" ")
			length++
		}
		d.text.WriteString(word)
		length += n
	}
	d.text.WriteString("\n\n")
}

// picture shows a figure of the same folder.
func (d *document) picture(name, text string) { fmt.Fprintf(&d.text, "![%s](%s.png)\n\n", text, name) }

// table writes lines of cells under a head; the first column is text.
func (d *document) table(head []string, lines [][]string) {
	d.line(head)
	d.line(append([]string{"---"}, repeat("---:", len(head)-1)...))
	for _, l := range lines {
		d.line(l)
	}
	d.text.WriteString("\n")
}

func (d *document) line(cells []string) { fmt.Fprintf(&d.text, "| %s |\n", strings.Join(cells, " | ")) }

func (d *document) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strings.TrimRight(d.text.String(), "\n")+"\n"), 0o666)
}

func repeat(cell string, n int) []string {
	var all []string
	for ; n > 0; n-- {
		all = append(all, cell)
	}
	return all
}

// figures writes a number with three significant digits or all before the point, 1,234,567.
func figures(x float64) string {
	if math.IsNaN(x) {
		return "NaN"
	}
	decimals := 0
	for limit := 100.0; decimals < 3 && math.Abs(x) < limit && x != math.Floor(x); limit /= 10 {
		decimals++
	}
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	whole, rest, point := strings.Cut(text, ".")
	for k := len(whole) - 3; k > 0 && whole[k-1] != '-'; k -= 3 {
		whole = whole[:k] + "," + whole[k:]
	}
	if point {
		return whole + "." + rest
	}
	return whole
}
