// Package erasure cuts bodies into rows of a Reed–Solomon code and joins them again.
//
// It decides which code is used. A body is cut into k pieces of equal length, the last of them
// padded with zeros; these are the rows 0 to k−1. The rows after them are computed, and any k
// distinct rows give the body. The matrix is the library's default one (Vandermonde, made
// systematic), whose row r depends only on k and r. So members can be added while the others keep
// what they hold, and no one needs to know how many rows there are.
//
// Rows carry no checksum: the caller must compare a joined body with its digest.
//
// How to read it:
//
//	erasure.go   Cut, Join, Derive
//	codec.go     the library's encoders, made once
//	errors.go    what can be wrong with rows
//
// May import: nothing of braid.
package erasure
