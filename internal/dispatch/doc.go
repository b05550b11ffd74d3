// Package dispatch is the flow of the program: what follows from an event, in
// what order, within which time, and what is written down about it. It does no
// I/O of its own but for the records; everything else comes in func fields.
package dispatch
