package member

// SlowestLink is the slowest link for which there is enough time, in bytes a second.
const SlowestLink = 4 << 20

// EnvelopeBytes is what an envelope takes in memory at most, with its place in queues.
const EnvelopeBytes = 256
