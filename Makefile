# make demo shows the product doing its job, make test passes all tests; both install what they need, as root on
# Debian 12 or 13. Go 1.26 is the one thing that no package of Debian's brings.

VERSION := $(shell sed -n 's/^Version: *//p' packaging/rpm/nm-azure-dispatch.spec)
GO := go
GO_TEST = GO=$(GO) test/go-test.sh
# Neither the program nor its tests need a C compiler, except for the race detector.
export CGO_ENABLED := 0
BUILD_FLAGS := -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$(VERSION)"
FUZZTIME := 10s

# Pinned, so that a new release of a linter does not fail an old commit.
STATICCHECK := $(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOFUMPT := $(GO) run mvdan.cc/gofumpt@v0.12.0

.DEFAULT_GOAL := build
.PHONY: help build demo test unit unit-plain unit-race lab lint words fuzz azure-cli-test bench fresh release clean deps go-version root
include packaging/rpm/rpm.mk
include packaging/deb/deb.mk
include packaging/sysext/sysext.mk
include packaging/dracut/dracut.mk
include lab/faults/faults.mk

help: ## lists the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | sort | awk -F '\t' '{ printf "%-20s %s\n", $$1, $$2 }'

build: go-version ## builds bin/nm-azure-dispatch
	$(GO) build $(BUILD_FLAGS) -o bin/nm-azure-dispatch ./cmd/nm-azure-dispatch

demo: root build deps ## shows the program on the newest Debian
	$(GO) run ./lab/cmd/demo

test: FUZZTIME := 5s
test: root lint unit lab fuzz rpmlint lintian ## all tests; as root
	@# Each of these needs one core most of the time.
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target verify-reproducible fresh
	@$(MAKE) --no-print-directory boot-test initrd-test-quick

# All but what has a target of its own below. The race detector is for the packages that start goroutines; the others run the
# program, or do one thing after the other. Many tests wait, so both run in parallel.
UNIT_SKIP := -e /lab -e /boottest -e /faults -e /packaging/dracut
UNIT_PLAIN := -e /nm-azure-dispatch$$ -e /packaging/ -e /azure$$ -e /bounded$$ -e /doctor -e /failure$$ -e /link$$ -e /term$$
UNIT_BOTH := ./internal/dispatch # has a test that is not for the race detector
UNIT_FIRST := ./wire # takes longest
unit: TOOLS += gcc:gcc /usr/include/stdlib.h:libc6-dev buildah:buildah
unit: build deps ## what needs no lab, the concurrent parts with the race detector
	$(GO) vet ./...
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target unit-race unit-plain
unit-plain:
	$(GO_TEST) -vet=off -shuffle=on -count=1 $$($(GO) list ./... | grep -v $(UNIT_SKIP) | grep $(UNIT_PLAIN)) $(UNIT_BOTH)
unit-race:
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO_TEST) -race -vet=off -shuffle=on -count=1 $(UNIT_FIRST) \
		$$($(GO) list ./... | grep -v $(UNIT_SKIP) | grep -v $(UNIT_PLAIN))

lab: root build deps ## the program on the real daemons, RUN=TestName for one test; as root
	$(GO_TEST) -count=1 -timeout=20m -p=1 -parallel=6 $(if $(RUN),-v -run '$(RUN)') ./lab/...

lint: go-version words ## gofumpt, staticcheck and words
	@out=$$($(GOFUMPT) -l .); [ -z "$$out" ] || { echo "gofumpt would change: $$out" >&2; exit 1; }
	$(STATICCHECK) -checks all ./...

words: go-version ## counts the expressions that docs/words.tsv replaces
	$(GO) test -count=1 -run='^TestWords$$' -v .

# Each target for FUZZTIME, with what that finds kept as it is: by default minimizing takes most of the time. From the seeds in the code and the corpus that is committed. go test fails now and then with
# "context deadline exceeded" and no input when the time is up (golang.org/issue/75804); that is no finding. FuzzRecord writes
# files: on tmpfs, which is ten times as fast.
fuzz: go-version ## each fuzz target for FUZZTIME
	@set -e; grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | while IFS=: read -r file f; do \
		out=$$(GOTMPDIR=/tmp TMPDIR=/dev/shm $(GO) test -run='^$$' -fuzz="^$${f#func }$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=1x "$$(dirname "$$file")" 2>&1) || \
			case $$out in *'Failing input'*) echo "$$out"; exit 1;; *'context deadline exceeded'*) ;; *) echo "$$out"; exit 1;; esac; \
		echo "$${f#func }: $$(echo "$$out" | grep -o 'execs: [0-9]*' | tail -n 1)"; done

# The Azure CLI is too large for make test. It is asked for each command's arguments only, without an account.
azure-cli-test: go-version ## the az commands of docs/images.md, given to an installed Azure CLI
	AZURE_CLI_TEST=1 $(GO) test -count=1 -run '^TestAzureCLI$$' ./packaging/stream/cmd/azure-stream

bench: build deps ## the program against its peers
	GO=$(GO) $(GO) test -run='^$$' -bench=. -benchtime=300x ./cmd/nm-azure-dispatch

# The demo on a machine with nothing on it but make, ca-certificates and Go: a Debian tree made from nothing.
SUITE := trixie
fresh: root deps ## the demo on a minimal Debian; as root
	GO=$(GO) test/fresh.sh $(SUITE)

release: ## what a release publishes, in dist/release/
	packaging/release.sh $(VERSION)

clean: ## removes what was built
	rm -rf bin dist

go-version:
	@command -v $(GO) >/dev/null || { echo "Go is not there: install Go 1.26 or later from https://go.dev/dl and put it into PATH" >&2; exit 1; }
	@v=$$(GOTOOLCHAIN=local $(GO) env GOVERSION); case $$v in go1.2[6-9]*|go1.[3-9][0-9]*|go[2-9]*|devel*) ;; \
		*) echo "$$v is too old: this needs Go 1.26 or later, from https://go.dev/dl" >&2; exit 1;; esac

# Asked for before anything is compiled.
root:
	@[ "$$(id -u)" = 0 ] || { echo "make $(MAKECMDGOALS) makes namespaces and may install packages: run it as root" >&2; exit 1; }

# Tools are COMMAND:PACKAGE or FILE:PACKAGE; what is there is not installed again.
TOOLS = ip:iproute2 mmdebstrap:mmdebstrap dbus-daemon:dbus-daemon curl:curl \
	qemu-img:qemu-utils xz:xz-utils git:git zstd:zstd bzip2:bzip2 zip:zip unzip:unzip
define install-tools
@missing=; for t in $(TOOLS); do \
	command -v $${t%:*} >/dev/null || [ -x /usr/sbin/$${t%:*} ] || [ -f $${t%:*} ] || missing="$$missing $${t#*:}"; done; \
[ -z "$$missing" ] || { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing; }
endef
deps: go-version
	$(install-tools)
