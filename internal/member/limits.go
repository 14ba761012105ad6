package member

// slowestLink is the slowest link for which there is enough time, in bytes a second.
const slowestLink = 4 << 20

// envelopeBytes is what an envelope takes in memory at most, with its place in queues.
const envelopeBytes = 256
