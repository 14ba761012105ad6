package raft

// copies is Raft's placement: nothing is coded, every member gets whole bodies, and a majority
// makes them safe. It is placement code with k = 1 always. So a cluster can change between the
// two: entries that were coded before are still treated as coded.
func copies(r *Raft) *code { return &code{r: r, most: 1} }
