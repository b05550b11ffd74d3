package faults

import "time"

// Peer is the best of the other programs in a case: who gets there first, and when. The zero value: none was measured in
// this case, or none got there.
type Peer struct {
	Name string
	Took time.Duration
}

// PeersNote says where the figures are from.
const PeersNote = `The peers' figures were measured side by side, each program only checking in, against the same scripted WireServer on
a machine of this kind (two cores, loaded), in whole seconds: bash with curl and sed, curl --retry, cloud-init 22.4 and head,
WALinuxAgent 2.7 and 2.15, Talos, Afterburn 5.10, azure-init. Shown is the fastest that got there. azure-init is not among
them for faults of goal state and health: it makes neither of these requests, only POST /provisioning/health, so such a
fault never touches it; and where that one request is not served for good, as may be on Azure Stack Hub, it never gets there.`

func sec(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// The fastest peers.
var (
	noPeer      = Peer{}
	atOnce      = Peer{"Afterburn, Talos", 0}
	curl3       = Peer{"curl --retry", sec(3)}
	waagentHang = Peer{"WALinuxAgent", sec(13)}
	curlHang    = Peer{"curl --retry, Afterburn", sec(31)}
	afterburn3  = Peer{"Afterburn", sec(3)}
	talos2      = Peer{"Talos", sec(2)}
	curlLate    = Peer{"curl --retry", sec(10)}
)
