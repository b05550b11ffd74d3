package main

import "embed"

//go:embed help
var helps embed.FS

// help is the text that --help prints for a command.
func help(command string) string {
	text, _ := helps.ReadFile("help/" + command + ".txt") // each command has one
	return string(text)
}
