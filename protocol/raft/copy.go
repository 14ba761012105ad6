package raft

// copies is Raft's placement: nothing is coded, every member gets whole payloads and bodies,
// a majority makes them safe. It is placement code that never codes, so that a cluster can
// change between the two: entries that were coded before are treated as they must be.
func copies(r *Raft) *code { return &code{r: r, most: 1} }
