package content

import (
	"strings"

	"postern/internal/postern"
)

// Renamed returns content in which the people whom it mentions have other names, in its list and where its text
// contains @ and the digits of one.
func Renamed(c postern.Content, name func(who string) string) postern.Content {
	if len(c.Mentions) == 0 {
		return c
	}
	names, list := map[string]string{}, make([]string, len(c.Mentions))
	for i, who := range c.Mentions {
		if list[i] = who; who != postern.MentionAll {
			list[i] = name(who)
			names[digits(who)] = digits(list[i])
		}
	}
	c.Mentions, c.Text = list, rewritten(c.Text, names)
	return c
}

func digits(who string) string { return strings.TrimPrefix(strings.TrimPrefix(who, "lid:"), "+") }

// rewritten replaces digits that follow an @.
func rewritten(text string, names map[string]string) string {
	parts := strings.Split(text, "@")
	for i, part := range parts[1:] {
		rest := strings.TrimLeft(part, "0123456789")
		if other, ok := names[part[:len(part)-len(rest)]]; ok {
			parts[i+1] = other + rest
		}
	}
	return strings.Join(parts, "@")
}
