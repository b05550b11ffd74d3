package machine

// What the tests read by themselves.
var (
	Within      = within
	ReadInt     = read[int]
	ReadHook    = readHook
	ReadConf    = readConf
	ReadKernel  = readKernel
	ReadRecords = readRecords
	ReadUnits   = readUnits
)

// Pick is for the tests of the choice of an interface.
func (s *Snapshot) Pick() string { return s.pick() }
