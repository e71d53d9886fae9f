package cudaload

// Where NVIDIA's libraries are looked for.

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"libvpps/env"
)

// libraryFiles lists what to try for each of some sonames, in their order: the linker's search
// path, the usual toolkit folders, and Python's packages, whose folders match patterns. Files that
// are not there are left out, names without a folder are up to the linker.
func libraryFiles(sonames []string, python ...string) []string {
	var dirs []string
	roots := []string{os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"), "/usr/local/cuda", "/opt/cuda"}
	if env.Secure() {
		roots = roots[2:]
	}
	for _, root := range roots {
		if root != "" {
			dirs = append(dirs, filepath.Join(root, "lib64"), filepath.Join(root, "lib"))
		}
	}
	if !env.Secure() {
		dirs = append(dirs, pythonDirs(python...)...)
	}

	var files []string
	for _, s := range sonames {
		files = append(files, s)
		for _, d := range dirs {
			if f := filepath.Join(d, s); fileExists(f) {
				files = append(files, f)
			}
		}
	}
	return files
}

// pythonDirs lists folders of NVIDIA's Python packages, for the python3 on PATH. It
// looks at folders only and starts no Python.
func pythonDirs(patterns ...string) []string {
	var prefixes []string
	if v := os.Getenv("VIRTUAL_ENV"); v != "" {
		prefixes = append(prefixes, v)
	}
	if exe, err := exec.LookPath("python3"); err == nil {
		prefixes = append(prefixes, filepath.Dir(filepath.Dir(exe)))
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			prefixes = append(prefixes, filepath.Dir(filepath.Dir(real)))
		}
		if dir := filepath.Dir(exe); filepath.Base(dir) == "shims" { // pyenv
			prefixes = append(prefixes, filepath.Join(filepath.Dir(dir), "versions", "*"))
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		prefixes = append(prefixes, filepath.Join(home, ".local"))
	}
	prefixes = append(prefixes, "/usr/local", "/usr")

	var dirs []string
	for _, p := range prefixes {
		for _, site := range []string{"lib/python3*/site-packages", "lib/python3*/dist-packages"} {
			for _, pattern := range patterns {
				found, _ := filepath.Glob(filepath.Join(p, site, "nvidia", pattern))
				dirs = append(dirs, found...)
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

func fileExists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
