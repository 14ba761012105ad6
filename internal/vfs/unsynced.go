package vfs

// Unsynced returns a file system without durability: Sync and SyncData of its files do nothing. After a crash of the
// machine files may lack writes, and have names that were removed.
func Unsynced(fs FS) FS { return unsynced{fs} }

type unsynced struct{ FS }

func (u unsynced) Create(name string) (File, error) { return withoutSync(u.FS.Create(name)) }

func (u unsynced) Open(name string) (File, error) { return withoutSync(u.FS.Open(name)) }

func (u unsynced) OpenReadWrite(name string) (File, error) {
	return withoutSync(u.FS.OpenReadWrite(name))
}

func (u unsynced) OpenDir(name string) (File, error) { return withoutSync(u.FS.OpenDir(name)) }

// withoutSync wraps a file that was opened.
func withoutSync(f File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	if d, ok := f.(descriptor); ok {
		return &unsyncedDescriptor{unsyncedFile{f}, d}, nil
	}
	return &unsyncedFile{f}, nil
}

type unsyncedFile struct{ File }

func (*unsyncedFile) Sync() error { return nil }

func (*unsyncedFile) SyncData() error { return nil }

// unsyncedDescriptor is an unsyncedFile with a descriptor, by which writers may also write.
type unsyncedDescriptor struct {
	unsyncedFile
	descriptor
}
