// Command typecheck checks the types of a module's packages, and of their tests, for another platform, without
// compiling anything:
//
//	go run ./internal/typecheck -platform darwin/arm64
//
// go vet finds the same errors, but it first compiles everything that the module needs for that platform, Go's own
// library, too. Here only the module's own functions are read; of all other packages their declarations are enough.
//
// How to read: main.go (what is checked), load.go (which packages there are), check.go (their types).
package main
