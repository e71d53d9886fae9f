// Package imports draws which of the library's packages imports which: docs/packages.svg. A package stands above all that
// it imports, so every arrow leads down.
package imports

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

//go:generate go run ./gen

// module is the prefix of our own import paths.
const module = "libvpps/"

// drawn are the folders whose packages are the library. What only tests, tools and benchmarks use is left out.
var drawn = []string{"bridge", "capi", "env", "gpu", "jit", "log", "persist"}

var leftOut = []string{"gen", "mocks", "standin", "testdata", "reference", "example"}

// Graph is the packages, each with those that it imports, by their folders.
type Graph map[string][]string

// Read finds the packages below a root. Files of tests do not count.
func Read(root string) (Graph, error) {
	g := Graph{}
	for _, folder := range drawn {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && slices.Contains(leftOut, d.Name()) {
				return fs.SkipDir
			}
			if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return nil
			}
			return g.add(root, path)
		})
		if err != nil {
			return nil, err
		}
	}
	return g, nil
}

// add adds the imports of a file to its package's.
func (g Graph) add(root, path string) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	at, err := filepath.Rel(root, filepath.Dir(path))
	if err != nil {
		return err
	}
	list := g[at]
	for _, i := range file.Imports {
		to, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module)
		if ours && !slices.Contains(list, to) {
			list = append(list, to)
		}
	}
	slices.Sort(list)
	g[at] = list
	return nil
}

// level is the length of the longest way down from a package.
func (g Graph) level(p string) int {
	n := 0
	for _, to := range g[p] {
		n = max(n, 1+g.level(to))
	}
	return n
}

// reaches reports whether p imports q by way of others.
func (g Graph) reaches(p, q string) bool {
	return slices.ContainsFunc(g[p], func(to string) bool { return to != q && (slices.Contains(g[to], q) || g.reaches(to, q)) })
}

// rows are the packages by level, the highest first. Inside a row a package is near those above that import it.
func (g Graph) rows() [][]string {
	var rows [][]string
	for p := range g {
		l := g.level(p)
		for len(rows) <= l {
			rows = append(rows, nil)
		}
		rows[l] = append(rows[l], p)
	}
	slices.Reverse(rows)
	at := map[string]float64{}
	for r, row := range rows {
		wish := func(p string) (x float64) {
			n := 0.0
			for from, list := range g {
				if slices.Contains(list, p) && !g.reaches(from, p) {
					x, n = x+at[from], n+1
				}
			}
			return x / max(n, 1)
		}
		slices.Sort(row)
		slices.SortStableFunc(row, func(a, b string) int {
			if wish(a) < wish(b) {
				return -1
			}
			return 1
		})
		for k, p := range row {
			at[p] = (float64(k) + 0.5) / float64(len(row))
		}
		rows[r] = row
	}
	return rows
}

// Sizes in pixels.
const (
	width, rowHeight, boxHeight, margin = 860, 74, 30, 16
	charWidth                           = 7.6
)

var colours = map[string]string{"bridge": "#eaf1fb", "persist": "#e9f6ec", "jit": "#fdf3e1", "gpu": "#f6eaf4"}

// Draw is the picture. Arrows that others imply are left out.
func (g Graph) Draw() []byte {
	rows := g.rows()
	height := rowHeight*len(rows) + margin
	type point struct{ x, y float64 }
	at := map[string]point{}
	for r, row := range rows {
		for k, p := range row {
			at[p] = point{margin + (float64(k)+0.5)*(width-2*margin)/float64(len(row)), float64(margin + r*rowHeight)}
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- Generated from the imports by go generate. -->\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n", width, height, width, height)
	b.WriteString("<title>The packages of the library, and what they import</title>\n" +
		"<defs><marker id=\"a\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0 L10,5 L0,10 z\" fill=\"#7a8894\"/></marker></defs>\n")
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n", width, height)
	for _, row := range rows {
		for _, p := range row {
			for _, to := range g[p] {
				if !g.reaches(p, to) {
					fmt.Fprintf(&b, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#7a8894\" stroke-width=\"1.3\" marker-end=\"url(#a)\"/>\n",
						at[p].x, at[p].y+boxHeight, at[to].x, at[to].y-1)
				}
			}
		}
	}
	for _, row := range rows {
		for _, p := range row {
			top, _, _ := strings.Cut(p, "/")
			fill := colours[top]
			if fill == "" {
				fill = "#f2f4f6"
			}
			w := charWidth*float64(len(p)) + 14
			fmt.Fprintf(&b, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"5\" fill=\"%s\" stroke=\"#7a8894\"/>\n", at[p].x-w/2, at[p].y, w, boxHeight, fill)
			fmt.Fprintf(&b, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"13\" text-anchor=\"middle\" fill=\"#1b2733\">%s</text>\n", at[p].x, at[p].y+20, p)
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
