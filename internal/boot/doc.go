// Package boot keeps what this program knows about the current boot: its ID,
// the record of the check-in, a record of each link, and the locks that keep
// runs apart.
//
// The records are files in a directory of root's (normally
// /run/nm-azure-dispatch), written by rename and readable by all; the locks are
// readable by root alone, since whoever can open a file can lock it. A record
// that is torn, of another boot, somebody else's, or no regular file counts as
// none: at worst Ready is sent twice, which is harmless.
package boot
