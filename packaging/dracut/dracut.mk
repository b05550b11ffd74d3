# The dracut module's test: initrds of Debian 13's dracut and Ignition, booted in QEMU. Included by the top Makefile.

INITRD_TEST = $(GO_TEST) -count=1 -timeout 40m -parallel 2 ./packaging/dracut -program $(CURDIR)/bin/nm-azure-dispatch

.PHONY: initrd-test initrd-test-quick
initrd-test initrd-test-quick: TOOLS := $(BOOT_TOOLS)

initrd-test: root build ## initrds that fail, in QEMU; as root
	$(install-tools)
	$(INITRD_TEST)

# The three quickest cases, as a part of make test.
initrd-test-quick: root build
	$(install-tools)
	$(INITRD_TEST) -quick
