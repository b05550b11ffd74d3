package main

import "embed"

//go:embed help
var helps embed.FS

// help is the text that --help prints for a command.
func help(command string) string {
	text, err := helps.ReadFile("help/" + command + ".txt")
	if err != nil {
		panic(err) // a command without a text
	}
	return string(text)
}
