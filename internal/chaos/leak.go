package chaos

import (
	"bufio"
	"io"
	"regexp"
	"strings"
)

// Leak is a line of the log that contains a secret or a text.
type Leak struct {
	Line int    // from 1
	What string // without the secret itself
}

// texts matches the texts that the driver and its contacts write.
var texts = regexp.MustCompile(`(out|in)-[0-9a-f]{8}-[0-9]+-[0-9a-f]{24}`)

// FindLeaks looks for message texts and for the given secrets, by name, in a log.
func FindLeaks(log io.Reader, secrets map[string]string) (found []Leak, err error) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		if texts.Match(lines.Bytes()) {
			found = append(found, Leak{n, "a message's text"})
		}
		for name, secret := range secrets {
			if strings.Contains(lines.Text(), secret) {
				found = append(found, Leak{n, name})
			}
		}
	}
	return found, lines.Err()
}
