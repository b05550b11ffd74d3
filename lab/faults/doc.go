// Package faults plays what can go wrong between a machine and its WireServer to the real program, each case in
// namespaces of its own with a scripted WireServer, and says how the program fared.
//
// The cases are plain values ([All]); a process of this same executable plays one in new namespaces ([Play]), so a
// program that uses the package calls [Main] first thing. [WriteTables] makes the tables of docs/reliability.md.
package faults
