// Package dispatch is the flow of the program: what is done for an event, in
// which order and within which time, and what is recorded and logged. It does no
// I/O except for the records; everything else is called through func fields.
package dispatch
