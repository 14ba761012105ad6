// Command release builds the files of a release from the commit that is checked out:
//
//	go run ./internal/release --out dist                                   # for all platforms
//	go run ./internal/release --out dist --version v0.1.0                  # fails if the source has another version
//	go run ./internal/release --out dist --platforms linux/amd64,linux/arm64
//
// For each platform there is an archive, with a static binary, and a list of the modules in the binary. SHA256SUMS has
// the checksums of all of them. Two runs of the same commit, with the same version of Go, write the same bytes: the
// paths of the machine are left out, and times are that of the commit, or of the variable SOURCE_DATE_EPOCH.
//
// main.go has flags and the order of the work, source.go reads the checkout, build.go calls the compiler,
// archive.go writes an archive, bom.go the list of modules, and sums.go the checksums.
package main
