package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

const archiveSuffix = ".tar.gz"

// entry is a file of an archive, or an empty folder if its name ends in a slash.
type entry struct {
	name string
	data []byte
	mode int64
}

// writeArchive writes entries below a folder, in the order of their names. All have the same time, and no owner.
func writeArchive(file, folder string, at time.Time, entries []entry) error {
	var out bytes.Buffer
	packed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	entries = slices.Clone(entries)
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	for _, e := range entries {
		header := tar.Header{Name: folder + "/" + e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: at,
			Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(e.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		if _, err := archive.Write(e.data); err != nil {
			return err
		}
	}
	for _, c := range []io.Closer{archive, packed} {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}
