// Package boottest boots a Debian tree with our RPM in it, the real systemd as its PID 1, on a network that looks like
// Azure's: as a container of systemd-nspawn, or in a virtual machine of QEMU's with a kernel and firmware tables of its
// own. Its test is "make boot-test" and "make boot-test-qemu".
//
// Each [Machine] lives in namespaces whose first process ends when the test's end of a pipe is closed, however the test
// ends; the kernel then ends all processes in them, and the mounts and interfaces with them. What is kept is the tree
// and QEMU's kernel, in /var/cache.
//
// The test's own executable is also what is needed inside: see [Main].
package boottest
