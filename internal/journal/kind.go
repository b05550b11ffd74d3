package journal

import "log/slog"

// Kind is a kind of journal entry. The catalog and docs/operations.md describe
// the same kinds, in the same order.
type Kind struct {
	Name    string     // in docs/operations.md; never changes
	ID      string     // MESSAGE_ID, 128 bits in hex; never changes
	Level   slog.Level // the entry's priority
	Message string     // the beginning of MESSAGE; may change
}

// The kinds of entries.
var (
	CheckedIn = kind("checked-in", "b5fa116840004455b4b4a0acc0fb3581", slog.LevelInfo,
		"checked in with the WireServer: Azure knows that this VM is ready")
	AttemptFailed = kind("attempt-failed", "ce9d17f7bf9748be916e8410304f63d2", slog.LevelWarn,
		"check-in attempt failed, retrying")
	HandedOver = kind("handed-over", "d99042b6c809471a99e2e9c4b3171cd8", slog.LevelWarn,
		"not done within a second, nm-azure-checkin.service continues")
	GivenUp = kind("given-up", "61f98c80bb3d40e3bbd2c09b126ab150", slog.LevelError,
		"gave up: Azure did not receive this VM's provisioning status")
	Option245Unusable = kind("option-245-unusable", "14cf100574964b0c910aeb4a2741aa04", slog.LevelWarn,
		"no usable WireServer address in the lease, using the default address")
	FailureReported = kind("failure-reported", "676406d31f014054bdc2055588c5c6dd", slog.LevelError,
		"reported to Azure that provisioning failed")
	NameserversPushed = kind("nameservers-pushed", "04e601449e4149edbdc4e25902d3122b", slog.LevelInfo,
		"configured the lease's nameservers in systemd-resolved")
	NameserversUndone = kind("nameservers-undone", "b0142e49dadc4ae8800e6ab792dfbb12", slog.LevelInfo,
		"removed the nameservers configured in systemd-resolved")
	NameserversLeft = kind("nameservers-left", "ecb4c94f404e4850a68c988ae086f16d", slog.LevelInfo,
		"did not configure nameservers for the link")
	NameserversFailed = kind("nameservers-failed", "e283c7f7295f4657808ab1ca9e7ca907", slog.LevelError,
		"failed to configure nameservers for the link")
	NameserverSilent = kind("nameserver-silent", "328965b2fbc443b688f60d0f8c4d12ad", slog.LevelWarn,
		"a nameserver does not answer")
	ResolvedUnavailable = kind("resolved-unavailable", "7faf76eaf3554860ae5b8a0f30511417", slog.LevelInfo,
		"systemd-resolved is not available, NetworkManager alone manages the nameservers")
	RecordFailed = kind("record-failed", "68e87c2e32db4836b02fe5017c080cb3", slog.LevelWarn,
		"failed to read or write a record")
	PlatformUnknown = kind("platform-unknown", "ec7ede00f9e44ef58996907db59b7deb", slog.LevelWarn,
		"cannot detect whether this machine is an Azure VM, doing nothing")
	LockHeld = kind("lock-held", "6da6e86046624a4fa4b4d50d197b4479", slog.LevelDebug,
		"another process is checking in")
)

var kinds []Kind

func kind(name, id string, level slog.Level, message string) Kind {
	k := Kind{name, id, level, message}
	kinds = append(kinds, k)
	return k
}

// Kinds returns all kinds, in the order of the documentation.
func Kinds() []Kind { return kinds }
