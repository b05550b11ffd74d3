# System extensions, made of the RPMs. Included by the top Makefile behind packaging/rpm/rpm.mk.

SYSEXT_TOOLS := $(RPM_TOOLS) mksquashfs:squashfs-tools

.PHONY: sysext sysext-tools

sysext: dist/nm-azure-dispatch-x86-64.raw dist/nm-azure-dispatch-arm64.raw ## system extensions in dist/

sysext-tools: TOOLS := $(SYSEXT_TOOLS)
sysext-tools:
	$(install-tools)

dist/nm-azure-dispatch-x86-64.raw: $(RPM).x86_64.rpm packaging/sysext/build.sh | sysext-tools
	packaging/sysext/build.sh dist $<
dist/nm-azure-dispatch-arm64.raw: $(RPM).aarch64.rpm packaging/sysext/build.sh | sysext-tools
	packaging/sysext/build.sh dist $<
