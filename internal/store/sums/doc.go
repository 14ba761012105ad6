// Package sums finds damage in a bbolt database: every key has a checksum in memory, against which it is checked when
// it is read, and each bucket has a sum of these in the database, against which the whole is checked when it is
// opened.
//
// pages.go reads bbolt's pages with every bound checked, lookup.go finds single buckets and elements; sums.go has the
// checksums of keys and buckets; guarded.go is a backend of etcd that keeps and checks them; scrubpages.go reads
// everything in pieces, in the background; readerror.go distinguishes damage from errors of reading; decoder.go decodes
// records.
//
// It imports nothing of braid.
package sums
