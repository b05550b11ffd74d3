// Package lab tests the product on the real daemons of Debian releases, in the labs of package test/lab.
package lab
