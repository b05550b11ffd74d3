// Package boottest boots Debian trees with our RPM in them, in virtual machines of QEMU's with a kernel and firmware tables
// of their own: what the labs in namespaces cannot show. Its test is "make boot-test".
package boottest
