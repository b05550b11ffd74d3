# What can go wrong, done to the real program: see docs/reliability.md. `make test` does what takes seconds of it.
.PHONY: faults faults-doc
FAULTS_TESTS := Mishaps|Messes|Killed|Storm|Veths|Timer|WireServerAway|HolderKilled|HandOver|NoUnit|KVP

faults: build deps ## everything that can go wrong; as root, ten minutes
	FAULTS=all $(GO_TEST) -count=1 -run '^TestFaults$$' ./lab/faults
	FAULTS=all $(GO_TEST) -count=1 -timeout=12m -parallel=4 -run '$(FAULTS_TESTS)' ./lab

# The same cases; the tables of docs/reliability.md are replaced.
faults-doc: build deps ## the tables of docs/reliability.md
	FAULTS=all $(GO_TEST) -count=1 -run '^TestFaults$$' ./lab/faults -args -write=$(CURDIR)/docs/reliability.md
