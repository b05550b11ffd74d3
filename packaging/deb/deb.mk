# The Debian packages, built from the RPMs. Included by the top Makefile after packaging/rpm/rpm.mk.

DEB_FILES := $(wildcard packaging/deb/*)

.PHONY: deb lintian

DEB_DRACUT := dist/nm-azure-dispatch-dracut_$(VERSION)-1_all.deb

deb: $(DEB)_amd64.deb $(DEB)_arm64.deb $(DEB_DRACUT) ## Debian packages in dist/

$(DEB)_amd64.deb: $(RPM).x86_64.rpm $(DEB_FILES)
	packaging/deb/build.sh dist $<
$(DEB)_arm64.deb: $(RPM).aarch64.rpm $(DEB_FILES)
	packaging/deb/build.sh dist $<
$(DEB_DRACUT): $(RPM).x86_64.rpm $(DEB_FILES)
	packaging/deb/build.sh dist dist/nm-azure-dispatch-dracut-$(VERSION)-1.noarch.rpm

lintian: TOOLS := $(RPM_TOOLS) lintian:lintian
lintian: deb ## lintian on them
	$(install-tools)
	lintian --no-cfg --allow-root --fail-on error $(DEB)_amd64.deb $(DEB)_arm64.deb $(DEB_DRACUT)
