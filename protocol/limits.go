package protocol

// Limits of messages between members. They are not settings, so they are the same on all members: a member with
// smaller settings must still accept what is in the log already.
const (
	// MaxEntryBytes bounds an entry: envelope, payload and body.
	MaxEntryBytes = 256 << 20
	// MaxConfigBytes bounds the payload of an EntryConfig. Configurations are in snapshots and in the log, one for each
	// instance.
	MaxConfigBytes = 256 << 10
	// MaxSectionBytes and MaxSectionName bound a [Section]. A snapshot has at most one for each
	// instance.
	MaxSectionBytes = 5 << 20
	MaxSectionName  = 64
	// MaxHoldings bounds the Holdings of a message. The first ones are needed first.
	MaxHoldings = 1024
	// MaxPartBytes bounds the protocol's own part of a message.
	MaxPartBytes = 1<<16 - 1
	// MaxInstances is the maximal number of instances that the global log is merged from.
	MaxInstances = 64
	// MaxMessageBytes bounds an encoded message. A message has one entry of any permitted size, or
	// several entries that are together at most half of this limit, a Part, and Holdings or a Blob.
	MaxMessageBytes = MaxEntryBytes + 1<<20
)

// Size is the length in bytes of the message when it is encoded.
func (m *Message) Size() int {
	n := MessageHeadSize + len(m.Blob)
	if m.Part != nil {
		n += len(m.Part.Append(nil))
	}
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

// Fitting is the number of the first entries that fit into one message of about limit bytes. It is at least one if
// there are entries.
func Fitting(entries []Entry, limit int) int {
	bytes := 0
	for i := range entries {
		if bytes += entries[i].Bytes(); bytes > limit && i > 0 {
			return i
		}
	}
	return len(entries)
}
