# The packages and what is built from them. Included by the top Makefile, which sets GO and VERSION and installs TOOLS.

RPM := dist/nm-azure-dispatch-$(VERSION)-1
DEB := dist/nm-azure-dispatch_$(VERSION)-1
# The boot test upgrades from this one.
RPM_OLDER := dist/older/nm-azure-dispatch-0.0.1-1.x86_64.rpm
RPM_FILES := $(shell packaging/rpm/sources.sh | tr '\0' '\n')

RPM_TOOLS := rpmbuild:rpm cpio:cpio file:file
RPMLINT_TOOLS := rpmlint:rpmlint
BOOT_TOOLS := mmdebstrap:mmdebstrap ip:iproute2 qemu-system-x86_64:qemu-system-x86 mke2fs:e2fsprogs cpio:cpio

.PHONY: srpm srpm-sources rpm sbom rpm-tools rpmlint verify-reproducible boot-test selinux-test

rpm: $(RPM).src.rpm $(RPM).x86_64.rpm $(RPM).aarch64.rpm sbom ## RPMs and their SBOMs in dist/
srpm: $(RPM).src.rpm
srpm-sources: | go-version ## the archives that the spec names, in dist/sources
	GO=$(GO) packaging/rpm/build.sh dist/sources $(VERSION) sources
sbom: $(RPM).x86_64.cdx.json $(RPM).aarch64.cdx.json

rpm-tools: TOOLS := $(RPM_TOOLS)
rpmlint: TOOLS := $(RPMLINT_TOOLS)
boot-test: TOOLS := $(BOOT_TOOLS)
rpm-tools:
	$(install-tools)

$(RPM).%.rpm: $(RPM_FILES) | go-version rpm-tools
	GO=$(GO) packaging/rpm/build.sh dist $(VERSION) $*
$(RPM_OLDER): $(RPM_FILES) | go-version rpm-tools
	GO=$(GO) packaging/rpm/build.sh dist/older 0.0.1 x86_64

$(RPM).%.cdx.json: $(RPM).%.rpm packaging/rpm/sbom/main.go
	rpm2cpio $< | cpio --quiet --extract --to-stdout ./usr/libexec/nm-azure-dispatch >$@.binary
	$(GO) run ./packaging/rpm/sbom $@.binary $< >$@
	rm $@.binary

rpmlint: rpm ## rpmlint on the RPMs
	$(install-tools)
	rpmlint --strict --config packaging/rpm/rpmlint.toml $(RPM).*.rpm

verify-reproducible: rpm deb ## builds the packages again and compares
	GO=$(GO) packaging/rpm/verify.sh $(VERSION) $(RPM).*.rpm $(DEB)_*.deb

# POLICY is a copy of /etc/selinux of a machine with SELinux: docs/decisions/0009-selinux.md.
selinux-test: TOOLS := $(BOOT_TOOLS)
selinux-test: root $(RPM).x86_64.rpm ## boots with the SELinux policy in POLICY, enforcing; as root
	@[ -e "$(POLICY)/config" ] || { echo "selinux-test: POLICY=$(POLICY) has no file config: give it a directory such as /etc/selinux of a Fedora machine" >&2; exit 1; }
	$(install-tools)
	$(GO_TEST) -count=1 -v -timeout 15m -run SELinux ./packaging/boottest -rpm $(CURDIR)/$(RPM).x86_64.rpm -policy $(abspath $(POLICY))

boot-test: root $(RPM).x86_64.rpm $(RPM_OLDER) $(DEB)_amd64.deb dist/nm-azure-dispatch-x86-64.raw ## boots Debian in QEMU with the packages, RUN=TestName for one; as root
	$(install-tools)
	$(GO_TEST) -count=1 -timeout 30m -parallel 2 $(if $(RUN),-v -run '$(RUN)') ./packaging/boottest -rpm $(CURDIR)/$(RPM).x86_64.rpm -older $(CURDIR)/$(RPM_OLDER) \
		-deb $(CURDIR)/$(DEB)_amd64.deb -sysext $(CURDIR)/dist/nm-azure-dispatch-x86-64.raw
