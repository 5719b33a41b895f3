// Zip packs the files of a directory so that the same files make the same bytes: in order of their names, and
// without times.
package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: zip FILE DIRECTORY")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pack writes the archive.
func pack(name, dir string) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	w := zip.NewWriter(out)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // in lexical order
		if err != nil || d.IsDir() {
			return err
		}
		return add(w, dir, path)
	})
	return errors.Join(err, w.Close(), out.Close())
}

// add adds one file.
func add(w *zip.Writer, dir, path string) error {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	part, err := w.CreateHeader(&zip.FileHeader{Name: filepath.ToSlash(name), Method: zip.Deflate})
	if err == nil {
		_, err = io.Copy(part, in)
	}
	return err
}
