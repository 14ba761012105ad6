// Package embed starts clusters of braid where Kubernetes' tests start etcd: as much of etcd's package of the same path
// as they use. A cluster is a process, `braid up`. It ends when it is closed, or with the process that started it.
//
//   - config.go has the settings that tests make.
//   - etcd.go has the types that tests use.
//   - up.go runs `braid up`.
//
// [ProgramVariable] and [FlagsVariable] say what to start.
package embed
