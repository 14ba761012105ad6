package code

// copies is Raft's placement: nothing is coded, every member gets whole bodies, and a majority
// makes them safe. It is placement code with k = 1 always. So a cluster can change between the
// two: entries that were coded before are still treated as coded.
func copies() *code { return &code{most: 1} }
