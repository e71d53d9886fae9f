package cudaload

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Our declarations against those of every toolkit found here: the prototypes by
// declaring them again, constants and the layout of structs by compiling a program
// that prints them. __CUDA_API_VERSION_INTERNAL makes a toolkit's header declare
// the functions of all versions under their own names, as the driver exports them.
func TestDeclarationsAgreeWithToolkits(t *testing.T) {
	dirs := pythonDirs("cu[0-9]*/include", "cuda_runtime/include")
	for _, root := range []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda", "/opt/cuda", "/usr"} {
		dirs = append(dirs, filepath.Join(root, "include"))
	}
	found := false
	for _, dir := range dirs {
		if !fileExists(filepath.Join(dir, "cuda.h")) {
			continue
		}
		found = true
		t.Run(version(t, dir), func(t *testing.T) {
			const start = "#define __CUDA_API_VERSION_INTERNAL\n#include <cuda.h>\n#include <stddef.h>\n#include <stdio.h>\n" +
				"#if CUDA_VERSION >= 12000\n#define CUDA_KERNEL_NODE_PARAMS CUDA_KERNEL_NODE_PARAMS_v1\n#endif\n"
			build(t, dir, start+"#define CUDA_FN(name, params, args) CUresult name params;\n#include \"cuda_fn.h\"\nint main(void) { return 0; }\n")
			facts := facts(t)
			require.Greater(t, strings.Count(facts, "\n"), 350)
			program := start + "int main(void) {\n" + facts + "return 0; }\n"
			ours := build(t, ".", strings.Replace(program, "#if CUDA_VERSION >= 12000", "#if 0", 1))
			theirs := strings.Split(build(t, dir, program), "\n")
			for i, line := range strings.Split(ours, "\n") {
				require.Equal(t, line, theirs[i])
			}
		})
	}
	if !found {
		t.Skip("skipped: needs a CUDA toolkit's cuda.h")
	}
}

func version(t *testing.T, dir string) string {
	header, err := os.ReadFile(filepath.Join(dir, "cuda.h"))
	require.NoError(t, err)
	return string(regexp.MustCompile(`CUDA_VERSION \d+`).Find(header))
}

// facts makes a line of C for each constant, struct and member of our cuda.h.
func facts(t *testing.T) string {
	header, err := os.ReadFile("cuda.h")
	require.NoError(t, err)
	var lines strings.Builder
	add := func(expression string) {
		fmt.Fprintf(&lines, "printf(\"%%s %%lld\\n\", \"%s\", (long long)(%s));\n", expression, expression)
	}
	for _, m := range regexp.MustCompile(`(?m)^(?:\t|#define )(CU\w+) (?:= )?[\dx]+`).FindAllStringSubmatch(string(header), -1) {
		// The mask of all flags grows with the versions.
		if m[1] != "CUDA_VERSION" && m[1] != "CU_CTX_FLAGS_MASK" {
			add(m[1])
		}
	}
	comment := regexp.MustCompile(`/\*.*?\*/|//.*`)
	for _, m := range regexp.MustCompile(`(?s)typedef struct \{(.*?)\n\} (\w+);`).FindAllStringSubmatch(string(header), -1) {
		add("sizeof(" + m[2] + ")")
		for _, member := range strings.Split(comment.ReplaceAllString(m[1], ""), ";") {
			for _, name := range strings.Split(member, ",") {
				if words := regexp.MustCompile(`\w+`).FindAllString(name, -1); len(words) > 0 {
					add(fmt.Sprintf("offsetof(%s, %s)", m[2], words[len(words)-1]))
				}
			}
		}
	}
	return lines.String()
}

// build compiles and runs a program against the cuda.h of a folder.
func build(t *testing.T, dir, program string) string {
	work := t.TempDir()
	// Beside the source, so that no folder with our cuda.h is searched.
	list, err := os.ReadFile("cuda_fn.h")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(work, "cuda_fn.h"), list, 0o644))
	source := filepath.Join(work, "main.c")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o644))
	out, err := exec.Command("cc", "-w", "-I"+dir, "-o", filepath.Join(work, "main"), source).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.Command(filepath.Join(work, "main")).CombinedOutput()
	require.NoError(t, err, string(out))
	return string(out)
}
