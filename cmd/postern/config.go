package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"postern/internal/config"
	"postern/internal/seal"

	"github.com/alecthomas/kong"
)

type configCmd struct {
	config.Server

	JSON bool `help:"Print JSON."`
}

// setting is a setting in force.
type setting struct {
	Name   string `json:"name"` // of the variable
	Value  string `json:"value"`
	Source string `json:"source"` // flag, variable, file or default
}

// Run prints all settings with which a server would start.
func (c *configCmd) Run(k *kong.Context, std streams) error {
	var list []setting
	for _, group := range flagsOf(k) {
		for _, f := range group {
			if len(f.Envs) > 0 {
				list = append(list, setting{f.Envs[0], shownValue(f), sourceOf(k, f)})
			}
		}
	}
	// The default pace depends on the network.
	at := slices.IndexFunc(list, func(s setting) bool { return s.Name == "POSTERN_PACE" })
	list[at].Value = c.DefaultPace().String()
	slices.SortFunc(list, func(a, b setting) int { return strings.Compare(a.Name, b.Name) })
	return table(data{JSON: c.JSON}, std, list, "SETTING\tVALUE\tSOURCE", func(s setting) string {
		return fmt.Sprintf("%s\t%s\t%s", s.Name, s.Value, s.Source)
	})
}

// shownValue formats the value of a setting. That of a secret is hidden.
func shownValue(f *kong.Flag) string {
	v := f.Target.Interface()
	if secret, ok := v.(seal.Secret); ok && secret == "" {
		return ""
	}
	if f.Target.Kind() != reflect.Slice {
		return fmt.Sprint(v)
	}
	list := make([]string, f.Target.Len())
	for i := range list {
		list[i] = fmt.Sprint(f.Target.Index(i))
	}
	return strings.Join(list, ",")
}

// sourceOf says where the value of a setting comes from.
func sourceOf(k *kong.Context, f *kong.Flag) string {
	given := func(p *kong.Path) bool { return p.Flag == f && !p.Resolved }
	switch {
	case slices.ContainsFunc(k.Path, given):
		return "flag"
	case config.IsSet(f.Envs):
		return "variable"
	case slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag == f }):
		return "file"
	}
	return "default"
}
