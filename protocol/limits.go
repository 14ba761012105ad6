package protocol

// Limits of what goes between members. They are the same everywhere and no setting: a member
// that was started with smaller settings still has to take what is in the log already.
const (
	// MaxEntryBytes bounds an entry: envelope, payload and body.
	MaxEntryBytes = 256 << 20
	// MaxConfigBytes bounds the payload of an EntryConfig. Configurations stand in snapshots and
	// in the log, one for each instance.
	MaxConfigBytes = 256 << 10
	// MaxHoldings bounds the Holdings of a message: what comes first is needed first.
	MaxHoldings = 1024
	// MaxInstances is how many instances the global log can be woven from.
	MaxInstances = 64
	// MaxMessageBytes bounds an encoded message. It has one entry of any size that may be, or
	// several that are together no larger than half of it, and Holdings or a Blob.
	MaxMessageBytes = MaxEntryBytes + 1<<20
)

// Size is the length in bytes of the message when it is encoded.
func (m *Message) Size() int {
	n := MessageHeadSize + len(m.Blob)
	for i := range m.Entries {
		e := &m.Entries[i]
		if n += e.Bytes(); e.BodySize > 0 {
			n += BodyHeadSize
		}
	}
	if len(m.Holdings) > 0 {
		n += len(m.Holdings)*holdingSize + 4
	}
	return n
}

// Fitting is how many of the entries, from the first on, go into one message of about limit
// bytes: at least one, if there is any.
func Fitting(entries []Entry, limit int) int {
	bytes := 0
	for i := range entries {
		if bytes += entries[i].Bytes(); bytes > limit && i > 0 {
			return i
		}
	}
	return len(entries)
}
