package wire

import "time"

// quiet is how long nothing must have been heard from a server before attempts
// are bound to the device with the default route.
const quiet = 10 * time.Second

// turn says what an attempt does differently from the first one, as far as
// there is a choice: without a fallback address, or without a device, or before
// quiet has passed, these do not apply.
type turn struct {
	provisioning bool // the short way, in place of the portable one
	fallback     bool // Reporter.Fallback, in place of Reporter.Server
	bound        bool // bound to Reporter.Device
}

// turnOf returns the turn of the nth attempt, counted from 1. Each of the three
// is on in every second attempt, the short way only once three have failed or
// hang. They do not go in step: from the fourth attempt on, any four in a row try
// each way at each address, and any eight in a row all eight combinations.
//
//	attempt  1  2  3  4  5  6  7  8  9 10 11 12
//	way      h  h  h  p  h  p  h  p  h  p  h  p
//	address  s  F  F  s  s  F  F  s  s  F  F  s
//	bound    .  B  .  .  B  .  B  B  .  B  .  .
//
// The way is bit 0 of n and the address bit 1. The binding is bit 0 again, so
// that it changes as often as can be, with its sense reversed by bit 2.
func turnOf(n int) turn {
	return turn{
		provisioning: n > 3 && n&1 == 0,
		fallback:     n>>1&1 == 1,
		bound:        (n^n>>2)&1 == 0,
	}
}

// attempt says what the next attempt does. beside is the slow one that it
// starts beside, nil for a retry.
func (l *loop) attempt(beside *flight) Attempt {
	l.attempts++
	turn := turnOf(l.attempts)
	a := Attempt{N: l.attempts, Server: l.r.Server, Via: ViaHealth}
	if turn.provisioning {
		a.Via = ViaProvisioning
	}
	if beside != nil {
		turn.fallback = beside.Server == l.r.Server // wherever the slow one is not
	}
	if turn.fallback && CheckTarget(l.r.Fallback) == nil {
		a.Server = l.r.Fallback
	}
	if turn.bound && l.r.Device != nil && time.Since(l.heard) >= quiet {
		a.Device = l.r.Device()
	}
	return a
}
