// Package boot stores the state of the current boot: its ID, the record of the
// check-in, a record per link, and the locks that serialize runs.
//
// The records are files in a directory owned by root (normally
// /run/nm-azure-dispatch), replaced by rename and readable by all users. The locks
// are readable by root only, because a file that can be opened can be locked. A
// record that is truncated, from another boot, owned by another user, or not a
// regular file is ignored: at worst Ready is sent twice, which is harmless.
package boot
